import FanfareCore
import PostgreSQL

/// Copies registrations into tables that do not have them, within one transaction: each table in the order of its key,
/// so that rows which come one after the other go to the same pages of its index.
///
/// The tables take no id, handle or installation a second time: what is there already, or comes twice, throws a
/// `PostgreSQLError` with the SQLSTATE `taken`.
struct RegistrationCopy {
  /// What the database says of a key that it has.
  static let taken = "23505"

  private let connection: PostgreSQLConnection
  private let hub: HubName
  /// Their members are asked for one by one: whoever copies a registration counts all the references that it holds.
  private let registrations: [Registration]
  /// The registrations by ascending ids.
  private let order: KeyOrder

  /// Of registrations that are all a hub's.
  init(_ connection: PostgreSQLConnection, _ hub: HubName, _ registrations: [Registration]) {
    self.connection = connection
    self.hub = hub
    self.registrations = registrations
    order = KeyOrder(ids: registrations.map(\.id))
  }

  /// The registrations themselves.
  func copyRegistrations() throws {
    try copy(
      into: "registrations", "id, username, platform, handle, installation, tags, registered_at, created_at, seen_at"
    ) {
      rows in
      for place in order {
        try rows.row(columns: 10)
        rows.text(hub.rawValue)
        rows.uuid(high: registrations[place].id.high, low: registrations[place].id.low)
        rows.text(registrations[place].user)
        rows.int2(Self.bit(of: registrations[place].platform))
        rows.text(registrations[place].handle)
        if let installation = registrations[place].installation { rows.text(installation) } else { rows.null() }
        rows.texts(registrations[place].tags)
        rows.int8(registrations[place].registeredAt.milliseconds)
        rows.int8(registrations[place].createdAt.milliseconds)
        if registrations[place].seenAt > registrations[place].registeredAt {
          rows.int8(registrations[place].seenAt.milliseconds)
        } else {
          rows.null()
        }
      }
    }
  }

  /// Who holds which handle.
  func copyHandles() throws {
    let order = KeyOrder(count: registrations.count) { registrations[$0].handle }
    try copy(into: "handles", "handle, registration, platform, registered_at") { rows in
      for place in order {
        try rows.row(columns: 5)
        rows.text(hub.rawValue)
        rows.text(registrations[place].handle)
        rows.uuid(high: registrations[place].id.high, low: registrations[place].id.low)
        rows.int2(Self.bit(of: registrations[place].platform))
        rows.int8(registrations[place].registeredAt.milliseconds)
      }
    }
  }

  /// Which installation has which registration.
  func copyInstallations() throws {
    let installed = registrations.compactMap { registration in
      registration.installation.map { (name: $0, id: registration.id) }
    }
    guard !installed.isEmpty else { return }
    try copy(into: "installations", "installation, registration") { rows in
      for index in KeyOrder(count: installed.count, text: { installed[$0].name }) {
        try rows.row(columns: 3)
        rows.text(hub.rawValue)
        rows.text(installed[index].name)
        rows.uuid(high: installed[index].id.high, low: installed[index].id.low)
      }
    }
  }

  /// What the registrations can be addressed by.
  func copyTags() throws {
    var tags: [(place: Int, tag: Int)] = []
    tags.reserveCapacity(registrations.count * 4)
    for place in order {
      for tag in registrations[place].tags.indices { tags.append((place, tag)) }
    }
    // Nearly half of all tags begin with the same letters. Those that are equal stay in the order of the ids.
    let order = KeyOrder(count: tags.count, prefix: Tag.usernamePrefix) {
      registrations[tags[$0].place].tags[tags[$0].tag]
    }
    try copy(into: "tags", "tag, registration, platform, handle, registered_at, created_at") { rows in
      for index in order {
        let (place, tag) = tags[index]
        try rows.row(columns: 7)
        rows.text(hub.rawValue)
        rows.text(registrations[place].tags[tag])
        rows.uuid(high: registrations[place].id.high, low: registrations[place].id.low)
        rows.int2(Self.bit(of: registrations[place].platform))
        rows.text(registrations[place].handle)
        rows.int8(registrations[place].registeredAt.milliseconds)
        rows.int8(registrations[place].createdAt.milliseconds)
      }
    }
  }

  private static func bit(of platform: Platform) -> Int16 { Int16(PlatformSet(platform).rawValue) }

  private func copy(into table: String, _ columns: String, _ write: (inout CopyWriter) throws -> Void) throws {
    _ = try connection.copyIn("COPY \(table) (hub, \(columns)) FROM STDIN (FORMAT binary)", write)
  }
}
