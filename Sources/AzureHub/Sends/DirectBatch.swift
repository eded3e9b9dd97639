import FanfareCore
import FrontEnd

/// The body of a direct send to several devices: a document of two parts (RFC 2046), `notification` and `devices`.
struct DirectBatch: Hashable, Sendable {
  /// The most devices.
  static let maximumCount = 1000
  /// The most parts.
  private static let maximumParts = 8
  /// The most bytes of the header section of a part.
  private static let maximumHeadSize = 4096

  let notification: ArraySlice<UInt8>
  /// The handles in order, as given.
  let handles: [String]

  /// Reads a body; `type` is the value of `Content-Type`.
  init(_ body: ArraySlice<UInt8>, type: String) throws(Refusal) {
    guard let boundary = Self.boundary(of: type) else {
      throw Refusal(.malformedRequest, "The Content-Type must be multipart/mixed with a boundary.")
    }
    let parts = Self.parts(of: body, boundary: boundary)
    guard let notification = parts["notification"], let devices = parts["devices"] else {
      throw Refusal(
        .malformedBody,
        "Could not find a part of the multipart content supplied; it must have the parts notification and devices.")
    }
    self.notification = notification
    handles = try Self.handles(devices)
  }

  /// The boundary in a media type, with or without quotes, and with white space around the `=`.
  private static func boundary(of type: String) -> [UInt8]? {
    // In ASCII the lower-case text has the same indices.
    guard type.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    let lowered = type.lowercased()
    guard lowered.hasPrefix("multipart/"), let range = lowered.firstRange(of: "boundary") else { return nil }
    var rest = type.utf8[range.upperBound...].drop { $0 == 0x20 || $0 == 0x09 }
    guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
    rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
    let isQuoted = rest.first == UInt8(ascii: "\"")
    if isQuoted { rest = rest.dropFirst() }
    let boundary = rest.prefix { isQuoted ? $0 != UInt8(ascii: "\"") : $0 != UInt8(ascii: ";") && $0 > 0x20 }
    return (1...70).contains(boundary.count) ? Array(boundary) : nil
  }

  /// The contents of the parts by their names.
  private static func parts(of body: ArraySlice<UInt8>, boundary: [UInt8]) -> [String: ArraySlice<UInt8>] {
    let delimiter = Array("--".utf8) + boundary
    var parts: [String: ArraySlice<UInt8>] = [:]
    var rest = body
    guard let first = rest.firstPlace(of: delimiter) else { return [:] }
    rest = rest[first.upperBound...]
    for _ in 0..<maximumParts {
      guard !rest.starts(with: "--".utf8), let end = rest.firstPlace(of: delimiter) else { break }
      if let (name, content) = part(rest[..<end.lowerBound]), parts[name] == nil { parts[name] = content }
      rest = rest[end.upperBound...]
    }
    return parts
  }

  /// The name of a part, from its `Content-Disposition`, and its content without the line end before the next part.
  private static func part(_ bytes: ArraySlice<UInt8>) -> (name: String, content: ArraySlice<UInt8>)? {
    let blank = [Array("\r\n\r\n".utf8), Array("\n\n".utf8)]
      .compactMap { bytes.prefix(maximumHeadSize).firstPlace(of: $0) }.min { $0.lowerBound < $1.lowerBound }
    guard let blank else { return nil }
    var content = bytes[blank.upperBound...]
    if content.last == UInt8(ascii: "\n") { content = content.dropLast() }
    if content.last == UInt8(ascii: "\r") { content = content.dropLast() }
    let head = String(decoding: bytes[..<blank.lowerBound], as: UTF8.self)
    for line in head.split(whereSeparator: \.isNewline) where line.lowercased().hasPrefix("content-disposition:") {
      for parameter in line.split(separator: ";").dropFirst() {
        let pair = parameter.split(separator: "=", maxSplits: 1).map { $0.filter { !$0.isWhitespace && $0 != "\"" } }
        if pair.count == 2, pair[0].lowercased() == "name" { return (pair[1].lowercased(), content) }
      }
    }
    return nil
  }

  /// Reads an array of handles. Some documentation has apostrophes instead of quotation marks; no handle contains one.
  private static func handles(_ part: ArraySlice<UInt8>) throws(Refusal) -> [String] {
    let hasQuotes = part.contains(UInt8(ascii: "\""))
    let json = hasQuotes ? part : part.map { $0 == UInt8(ascii: "'") ? UInt8(ascii: "\"") : $0 }[...]
    var handles: [String] = []
    do throws(JSONError) {
      var reader = try JSONReader(json)
      try reader.readArray { (reader) throws(JSONError) in
        handles.append(try reader.readString())
        guard handles.count <= maximumCount else {
          throw reader.error("is one device more than the \(maximumCount) allowed")
        }
      }
      try reader.finish()
    } catch {
      throw Refusal(.malformedBody, "The part devices \(error.problem)")
    }
    guard !handles.isEmpty else { throw Refusal(.malformedBody, "The part devices names no device.") }
    return handles
  }
}
