import FanfareCore

/// `{"reason":"…","timestamp":…}`: the body of an error answer, and of a GOAWAY's debug data.
struct APNsErrorBody: Sendable {
  /// The reason, where it is one that we know.
  private(set) var reason: APNsReason?
  /// On 410, since when the device token is no longer valid.
  private(set) var timestamp: UnixTime?

  /// Reads what can be read; what is garbled is not there.
  init(_ body: [UInt8]) {
    guard !body.isEmpty else { return }
    do {
      var reader = try JSONReader(body[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        switch (key, try reader.nextKind()) {
        case ("reason", .string): reason = APNsReason(rawValue: try reader.readString())
        case ("timestamp", .number): timestamp = UnixTime(milliseconds: try reader.readInteger())
        default: try reader.skipValue()
        }
      }
    } catch {
      // An answer that is not the documented JSON (a proxy's HTML, a body cut short) says nothing; its status does.
    }
  }
}
