import NIOCore

/// The moment when a post was due, carried in its text to the device.
enum DueTime {
  private static let mark = Array("due=".utf8)

  /// The text to send.
  static func text(_ due: NIODeadline) -> String { "due=\(due.uptimeNanoseconds)" }

  /// The moment that a payload carries; nil for one that carries none.
  static func read(from payload: [UInt8]) -> NIODeadline? {
    // By hand, for every push: the library's search takes microseconds.
    guard payload.count > mark.count,
      let start = (0..<(payload.count - mark.count)).first(where: { start in
        payload[start] == mark[0] && payload[start..<(start + mark.count)].elementsEqual(mark)
      })
    else { return nil }
    let digits = payload[(start + mark.count)...].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    return UInt64(String(decoding: digits, as: UTF8.self)).map(NIODeadline.uptimeNanoseconds)
  }
}
