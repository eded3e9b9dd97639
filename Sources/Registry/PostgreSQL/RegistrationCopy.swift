import FanfareCore
import PostgreSQL

/// Copies registrations into tables that do not have them, within one transaction: each table in the order of its key, so that rows which come one after
/// the other go to the same pages of its index.
///
/// The tables take no id, handle or installation a second time: what is there already, or comes twice, throws a `PostgreSQLError` with the SQLSTATE
/// `taken`.
struct RegistrationCopy {
  /// What the database says of a key that it has.
  static let taken = "23505"

  private let connection: PostgreSQLConnection
  private let hub: HubName
  /// By ascending ids.
  private let registrations: [Registration]

  /// Of registrations that are all a hub's.
  init(_ connection: PostgreSQLConnection, _ hub: HubName, _ registrations: [Registration]) {
    self.connection = connection
    self.hub = hub
    let order = KeyOrder(ids: registrations.map(\.id))
    self.registrations = order.map { registrations[$0] }
  }

  /// The registrations themselves.
  func copyRegistrations() throws {
    try copy(into: "registrations", "id, username, platform, handle, installation, tags, registered_at, created_at, seen_at") {
      rows in
      for registration in registrations {
        try rows.row(columns: 10)
        rows.text(hub.rawValue)
        rows.uuid(high: registration.id.high, low: registration.id.low)
        rows.text(registration.user)
        rows.int2(Self.bit(of: registration.platform))
        rows.text(registration.handle)
        if let installation = registration.installation { rows.text(installation) } else { rows.null() }
        rows.texts(registration.tags)
        rows.int8(registration.registeredAt.milliseconds)
        rows.int8(registration.createdAt.milliseconds)
        if registration.seenAt > registration.registeredAt {
          rows.int8(registration.seenAt.milliseconds)
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
      for index in order {
        let registration = registrations[index]
        try rows.row(columns: 5)
        rows.text(hub.rawValue)
        rows.text(registration.handle)
        rows.uuid(high: registration.id.high, low: registration.id.low)
        rows.int2(Self.bit(of: registration.platform))
        rows.int8(registration.registeredAt.milliseconds)
      }
    }
  }

  /// Which installation has which registration.
  func copyInstallations() throws {
    let installed = registrations.compactMap { registration in registration.installation.map { (name: $0, id: registration.id) } }
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
    var tags: [(registration: Int, tag: Int)] = []
    tags.reserveCapacity(registrations.count * 4)
    for (index, registration) in registrations.enumerated() {
      for tag in registration.tags.indices { tags.append((index, tag)) }
    }
    func tag(_ place: (registration: Int, tag: Int)) -> String { registrations[place.registration].tags[place.tag] }
    // Nearly half of all tags begin with the same letters.
    let order = KeyOrder(count: tags.count, prefix: Tag.usernamePrefix) { tag(tags[$0]) }
    try copy(into: "tags", "tag, registration, platform, handle, registered_at, created_at") { rows in
      for index in order {
        let registration = registrations[tags[index].registration]
        try rows.row(columns: 7)
        rows.text(hub.rawValue)
        rows.text(tag(tags[index]))
        rows.uuid(high: registration.id.high, low: registration.id.low)
        rows.int2(Self.bit(of: registration.platform))
        rows.text(registration.handle)
        rows.int8(registration.registeredAt.milliseconds)
        rows.int8(registration.createdAt.milliseconds)
      }
    }
  }

  private static func bit(of platform: Platform) -> Int16 { Int16(PlatformSet(platform).rawValue) }

  private func copy(into table: String, _ columns: String, _ write: (inout CopyWriter) throws -> Void) throws {
    _ = try connection.copyIn("COPY \(table) (hub, \(columns)) FROM STDIN (FORMAT binary)", write)
  }
}
