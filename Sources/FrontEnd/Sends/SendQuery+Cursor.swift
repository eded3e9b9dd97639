import FanfareCore

extension SendQuery.Position {
  /// As callers are given it: its 24 bytes in hexadecimal.
  var cursor: String {
    Hexadecimal.text((0..<8).map { UInt8(truncatingIfNeeded: acceptedAt.milliseconds >> (56 - $0 * 8)) } + send.bytes)
  }

  /// Reads `cursor`; nil for anything else.
  init?(cursor: String) {
    let digits = cursor.utf8.compactMap(Hexadecimal.value)
    guard digits.count == 48, cursor.utf8.count == 48 else { return nil }
    let bytes = stride(from: 0, to: 48, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    guard let send = SendID(bytes: bytes[8...]) else { return nil }
    let milliseconds = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    self.init(acceptedAt: UnixTime(milliseconds: Int64(bitPattern: milliseconds)), send: send)
  }
}

extension SendQuery {
  /// What a request asks for with `state`, `user`, `limit` and `cursor`. Everybody is shown their own, operators all.
  /// Throws a refusal that names the parameter, also for any other.
  init(_ query: Query, by caller: Caller) throws(Refusal) {
    try query.requireOnly(["state", "user", "limit", "cursor"])
    self.init(hub: caller.hub.name, sender: caller.roles.contains(.operator) ? nil : caller.user)
    if let word = try query.value(of: "state") {
      guard let value = SendReport.State(rawValue: word) else {
        throw Refusal(
          .invalidParameter, "state must be one of " + SendReport.State.allCases.map(\.rawValue).joined(separator: ", ")
        )
      }
      state = value
    }
    if let name = try query.value(of: "user") {
      guard UserName.isValid(name) else {
        throw Refusal(.invalidParameter, "user must be a user name: \(UserName.rule)")
      }
      user = name
    }
    if let text = try query.value(of: "limit") {
      guard let number = Int(text), (1...Self.maximumLimit).contains(number) else {
        throw Refusal(.invalidParameter, "limit must be a whole number from 1 to \(Self.maximumLimit)")
      }
      limit = number
    }
    if let text = try query.value(of: "cursor") {
      guard let position = Position(cursor: text) else {
        throw Refusal(.invalidParameter, "cursor must be what an earlier answer had as next")
      }
      after = position
    }
  }
}
