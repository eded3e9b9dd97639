import HTTP2
import NIOCore

/// Takes the bytes of an HTTP/1.1 connection apart into requests (RFC 9112).
///
/// Where the RFC lets a server choose, it refuses: line feeds without carriage return, folded fields, spaces around a
/// field's name, and every body whose end two servers could see in different places. Each line is checked as soon as it
/// has arrived, and no line, head or trailer section is held beyond the limits. After a violation it reads nothing more.
///
/// The fields stay bytes of the buffer that they arrived in; see `RequestFields`.
///
/// States: `head` → `body` or the states of chunks → `head`; `refused` from any state.
struct HTTP1Parser {
  struct Limits {
    /// The most bytes of a line: the request line or a field.
    let fieldSize: Int
    /// The most bytes of the head, and of the trailers.
    let size: Int
    /// The most fields.
    let count: Int
    /// Whether HTTP/1.1 needs a `Host`, as RFC 9112 §3.2 demands.
    var requiresHost = true
  }

  enum Part {
    case head(HTTP1Head)
    /// A part of a body; not empty.
    case body(ByteBuffer)
    /// The end of the request.
    case end
  }

  private enum State {
    case head
    /// The body, of which bytes are left.
    case body(Int)
    /// The line before a chunk.
    case chunkSize
    case chunk(Int)
    /// The line end behind a chunk.
    case chunkEnd
    /// The fields behind the last chunk, which are dropped.
    case trailers
    case refused
  }

  /// The most bytes of the line before a chunk. Extensions have no meaning here (RFC 9112 §7.1.1); those with a quoted
  /// value are refused, because servers differ in where they see its end.
  private static let chunkLineSize = 256
  /// The largest chunk is far below `Int.max`: adding to its size cannot overflow.
  private static let mostChunkDigits = 12

  private let limits: Limits
  private var state = State.head
  /// The head of which not all lines have arrived, and the bytes of those that have. They stay in the buffer.
  private var head: HTTP1Head?
  private var headSize = 0
  private var fieldsStart = 0
  private var trailersSize = 0
  private var count = 0

  init(limits: Limits) { self.limits = limits }

  /// Takes the next part from the beginning of the buffer; nil if more bytes must arrive first.
  mutating func next(_ buffer: inout ByteBuffer) throws(RuleViolation) -> Part? {
    do throws(RuleViolation) { return try readPart(&buffer) } catch {
      state = .refused
      throw error
    }
  }

  private mutating func readPart(_ buffer: inout ByteBuffer) throws(RuleViolation) -> Part? {
    while true {
      switch state {
      case .head: return try readHead(&buffer).map { .head($0) }
      case .body(let left):
        guard left > 0 else {
          state = .head
          return .end
        }
        guard let part = buffer.readSlice(length: min(left, buffer.readableBytes)), part.readableBytes > 0 else {
          return nil
        }
        state = .body(left - part.readableBytes)
        return .body(part)
      case .chunkSize:
        guard let (size, length) = try Self.chunkSize(buffer.readableBytesUInt8Span) else { return nil }
        buffer.moveReaderIndex(forwardBy: length)
        state = size > 0 ? .chunk(size) : .trailers
      case .chunk(let left):
        guard left > 0 else {
          state = .chunkEnd
          continue
        }
        guard let part = buffer.readSlice(length: min(left, buffer.readableBytes)), part.readableBytes > 0 else {
          return nil
        }
        state = .chunk(left - part.readableBytes)
        return .body(part)
      case .chunkEnd:
        guard try Self.beginsWithLineEnd(buffer.readableBytesUInt8Span) else { return nil }
        buffer.moveReaderIndex(forwardBy: 2)
        state = .chunkSize
      case .trailers:
        guard let length = try readTrailer(buffer.readableBytesUInt8Span) else { return nil }
        buffer.moveReaderIndex(forwardBy: length)
        guard length == 2 else { continue }
        state = .head
        return .end
      case .refused:
        buffer.clear()
        return nil
      }
    }
  }

  private mutating func readHead(_ buffer: inout ByteBuffer) throws(RuleViolation) -> HTTP1Head? {
    if head == nil {
      // RFC 9112 §2.2: empty lines before a request are ignored.
      while Self.beginsWithEmptyLine(buffer.readableBytesUInt8Span) { buffer.moveReaderIndex(forwardBy: 2) }
      head = try readRequestLine(buffer.readableBytesUInt8Span)
    }
    guard head != nil, try readFields(buffer.readableBytesUInt8Span), var head = head.take() else { return nil }
    let start = buffer.readerIndex + fieldsStart
    try head.end(
      lines: buffer.getSlice(at: start, length: headSize - fieldsStart) ?? ByteBuffer(),
      requiresHost: limits.requiresHost)
    buffer.moveReaderIndex(forwardBy: headSize)
    state = head.isChunked ? .chunkSize : .body(head.declaredLength ?? 0)
    (trailersSize, count) = (0, 0)
    return head
  }

  private static func beginsWithEmptyLine(_ bytes: Span<UInt8>) -> Bool {
    bytes.count > 1 && bytes[0] == .carriageReturn && bytes[1] == .lineFeed
  }

  /// Reads the request line; nil if it has not arrived whole.
  private mutating func readRequestLine(_ bytes: Span<UInt8>) throws(RuleViolation) -> HTTP1Head? {
    if bytes.count == 0 || (bytes.count == 1 && bytes[0] == .carriageReturn) { return nil }
    var index = 0
    while index < bytes.count, bytes[index].isTokenByte, index <= HTTP1Head.longestMethod { index += 1 }
    if index == bytes.count { return nil }
    guard bytes[index] == .space, let method = HTTP1Head.method(bytes.extracting(..<index)) else {
      // What should have been the preface of HTTP/2 is no request.
      let isPreface = bytes.extracting(..<index).isEqual(to: "PRI".utf8.span)
      throw RuleViolation(fault: isPreface ? .malformed : .unknownMethod)
    }
    while index < bytes.count, bytes[index] == .space { index += 1 }
    let start = index
    while index < bytes.count, bytes[index].isTargetByte { index += 1 }
    guard index <= limits.fieldSize, index <= limits.size else { throw RuleViolation(fault: .headersTooLarge) }
    // The rest is ` HTTP/1.1` and the line end.
    if index < bytes.count, bytes[index] != .space || index == start { throw RuleViolation(fault: .malformed) }
    let rest = bytes.extracting(index...)
    let protocolName = " HTTP/1.".utf8.span
    // The bytes that have arrived are checked at once: a client that sends something else would wait for its answer.
    let known = min(rest.count, protocolName.count)
    guard rest.extracting(..<known).isEqual(to: protocolName.extracting(..<known)) else {
      throw RuleViolation(fault: .malformed)
    }
    guard rest.count >= 11 else { return nil }
    guard (0x30...0x31).contains(rest[8]), rest[9] == .carriageReturn, rest[10] == .lineFeed,
      let target = HTTP1Head.originForm(String(copying: bytes.extracting(start..<index)), method)
    else { throw RuleViolation(fault: .malformed) }
    (headSize, fieldsStart, count) = (index + 11, index + 11, 0)
    return HTTP1Head(method: method, target: target, isOld: rest[8] == 0x30)
  }

  /// Reads the fields that have arrived. Returns whether the head is whole.
  private mutating func readFields(_ bytes: Span<UInt8>) throws(RuleViolation) -> Bool {
    while true {
      switch HTTP1Line.read(bytes, at: headSize) {
      case .incomplete:
        guard bytes.count - headSize <= limits.fieldSize, bytes.count <= limits.size else {
          throw RuleViolation(fault: .headersTooLarge)
        }
        return false
      case .malformed: throw RuleViolation(fault: .malformed)
      case .empty:
        headSize += 2
        return true
      case .field(let name, let value, let end):
        count += 1
        guard end - headSize <= limits.fieldSize, end <= limits.size, count <= limits.count else {
          throw RuleViolation(fault: .headersTooLarge)
        }
        head?.note(
          bytes.extracting(name), bytes.extracting(value),
          at: KeyFields.Place(value.lowerBound - fieldsStart, value.count))
        headSize = end
      }
    }
  }

  /// Reads one line behind the last chunk. Returns its length, 2 for the empty line at the end; nil if it has not
  /// arrived whole.
  private mutating func readTrailer(_ bytes: Span<UInt8>) throws(RuleViolation) -> Int? {
    let line = HTTP1Line.read(bytes, at: 0)
    switch line {
    case .empty: return 2
    case .field(_, _, let end) where trailersSize + end <= limits.size && count < limits.count:
      trailersSize += end
      count += 1
      return end
    case .incomplete where trailersSize + bytes.count <= limits.size: return nil
    case .field, .incomplete, .malformed: throw .malformedBody
    }
  }

  /// Whether the line end has arrived, which must come next.
  private static func beginsWithLineEnd(_ bytes: Span<UInt8>) throws(RuleViolation) -> Bool {
    if bytes.count > 0, bytes[0] != .carriageReturn { throw .malformedBody }
    guard bytes.count > 1 else { return false }
    guard bytes[1] == .lineFeed else { throw .malformedBody }
    return true
  }

  /// Reads the line before a chunk. Returns the size of the chunk and the length of the line; nil if it has not arrived
  /// whole.
  private static func chunkSize(_ bytes: Span<UInt8>) throws(RuleViolation) -> (size: Int, length: Int)? {
    var (size, index) = (0, 0)
    while index < bytes.count, let digit = bytes[index].hexadecimalValue {
      guard index < mostChunkDigits else { throw .malformedBody }
      size = size << 4 | digit
      index += 1
    }
    guard index < bytes.count else { return nil }
    guard index > 0 else { throw .malformedBody }
    while index < bytes.count, bytes[index] == UInt8(ascii: ";") {
      index = try tokenEnd(bytes, from: index + 1)
      if index < bytes.count, bytes[index] == UInt8(ascii: "=") { index = try tokenEnd(bytes, from: index + 1) }
    }
    guard index <= chunkLineSize else { throw .malformedBody }
    return try beginsWithLineEnd(bytes.extracting(index...)) ? (size, index + 2) : nil
  }

  /// Returns the end of a token, which must not be empty.
  private static func tokenEnd(_ bytes: Span<UInt8>, from start: Int) throws(RuleViolation) -> Int {
    var index = start
    while index < bytes.count, bytes[index].isTokenByte { index += 1 }
    if index == start, index < bytes.count { throw .malformedBody }
    return index
  }
}

/// A line of a header section.
enum HTTP1Line {
  case incomplete
  case malformed
  /// The end of the section.
  case empty
  /// The places of the name and of the value without spaces around it, and the beginning of the next line.
  case field(name: Range<Int>, value: Range<Int>, end: Int)

  /// Reads the line that begins at a byte.
  static func read(_ bytes: Span<UInt8>, at start: Int) -> HTTP1Line {
    var index = start
    while index < bytes.count, bytes[index].isTokenByte { index += 1 }
    guard index < bytes.count else { return .incomplete }
    guard index > start, bytes[index] == UInt8(ascii: ":") else {
      guard index == start, bytes[index] == .carriageReturn else { return .malformed }
      guard index + 1 < bytes.count else { return .incomplete }
      return bytes[index + 1] == .lineFeed ? .empty : .malformed
    }
    let name = start..<index
    index += 1
    while index < bytes.count, bytes[index].isBlank { index += 1 }
    let valueStart = index
    while index < bytes.count, bytes[index].isValueByte { index += 1 }
    guard index < bytes.count else { return .incomplete }
    guard bytes[index] == .carriageReturn else { return .malformed }
    guard index + 1 < bytes.count else { return .incomplete }
    guard bytes[index + 1] == .lineFeed else { return .malformed }
    var valueEnd = index
    while valueEnd > valueStart, bytes[valueEnd - 1].isBlank { valueEnd -= 1 }
    return .field(name: name, value: valueStart..<valueEnd, end: index + 2)
  }
}

/// A request that is refused before it is handed to a route. Nothing after it on the connection is read.
struct RuleViolation: Error {
  let fault: RequestFault
  /// The value of `X-Request-Id`.
  var requestID: String?

  static let malformedBody = RuleViolation(fault: .malformedBody)
}

extension RequestFault {
  static let headersTooLarge = RequestFault(
    .headersTooLarge, "the request line and header fields are larger than the server accepts")
  static let unknownMethod = RequestFault(.notImplemented, "this server does not know the request's method")
  static let malformed = RequestFault(.malformed, "the request is not well-formed HTTP")
  static let malformedBody = RequestFault(.malformed, "the body is not well-formed HTTP")
}

extension UInt8 {
  fileprivate static let carriageReturn = UInt8(ascii: "\r")
  fileprivate static let lineFeed = UInt8(ascii: "\n")
  fileprivate static let space = UInt8(ascii: " ")
  fileprivate static let tab = UInt8(ascii: "\t")

  /// The bits of the bytes that a token may have (RFC 9110 §5.6.2), from 0 and from 64.
  private static let tokenBits: (low: UInt64, high: UInt64) = (0x03FF_6CFA_0000_0000, 0x57FF_FFFF_C7FF_FFFE)

  /// Whether names of methods and fields may have the byte.
  fileprivate var isTokenByte: Bool {
    let bits = self < 64 ? Self.tokenBits.low : self < 128 ? Self.tokenBits.high : 0
    return bits >> UInt64(self & 63) & 1 == 1
  }

  /// Whether the target of a request may have the byte: a visible character of ASCII.
  fileprivate var isTargetByte: Bool { self > 0x20 && self < 0x7F }

  /// Whether values of fields may have the byte (RFC 9110 §5.5).
  fileprivate var isValueByte: Bool { (self >= 0x20 && self != 0x7F) || self == .tab }

  var isBlank: Bool { self == .space || self == .tab }

  fileprivate var hexadecimalValue: Int? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(self - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(self - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(self - UInt8(ascii: "A")) + 10
    default: nil
    }
  }
}
