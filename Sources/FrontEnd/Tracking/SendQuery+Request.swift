import FanfareCore

extension SendQuery {
  /// Reads the parameters `state`, `user`, `limit` and `cursor`.
  /// Operators see all sends, others those they posted.
  ///
  /// Throws a refusal that names an invalid or unknown parameter.
  init(_ query: Query, by caller: Caller) throws(Refusal) {
    try query.requireOnly(["state", "user", "limit", "cursor"])
    self.init(hub: caller.hub.name, sender: caller.isOperator ? nil : caller.user)
    if let word = try query.value(of: "state") {
      guard let value = SendReport.State(rawValue: word) else {
        throw Refusal(
          .invalidParameter, "state must be one of " + SendReport.State.allCases.map(\.rawValue).joined(separator: ", ")
        )
      }
      state = value
    }
    user = try query.userName("user")
    if let number = try query.limit(upTo: Self.maximumLimit) { limit = number }
    after = try query.cursor { Position(cursor: $0) }
  }
}

extension SendQuery.Position {
  /// The position as a cursor: its 24 bytes in hexadecimal.
  var cursor: String {
    Hexadecimal.text((0..<8).map { UInt8(truncatingIfNeeded: acceptedAt.milliseconds >> (56 - $0 * 8)) } + send.bytes)
  }

  /// Parses a `cursor`; returns nil for any other text.
  init?(cursor: String) {
    let digits = cursor.utf8.compactMap(Hexadecimal.value)
    guard digits.count == 48, cursor.utf8.count == 48 else { return nil }
    let bytes = stride(from: 0, to: 48, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    guard let send = SendID(bytes: bytes[8...]) else { return nil }
    let milliseconds = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    self.init(acceptedAt: UnixTime(milliseconds: Int64(bitPattern: milliseconds)), send: send)
  }
}
