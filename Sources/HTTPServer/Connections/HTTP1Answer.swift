import HTTPTypes
import NIOCore

/// Writes answers in the format of HTTP/1.1.
enum HTTP1Answer {
  /// A body of at most this many bytes is copied behind its head, so that one write suffices.
  static let maximumCopy = 16 * 1024

  static let lastChunk = ByteBuffer(string: "0\r\n\r\n")

  static let goOn = ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")

  /// Writes the head of an answer with a body of `length` bytes. `isLast`: the connection closes after it.
  static func write(_ head: HTTPResponse, length: Int, isLast: Bool, to buffer: inout ByteBuffer) {
    writeFields(of: head, to: &buffer)
    if head.status.hasLength, head.headerFields[.contentLength] == nil {
      write("Content-Length", "\(length)", to: &buffer)
    }
    end(isLast: isLast, &buffer)
  }

  /// Writes the head of an answer whose body comes in parts. One that is not in chunks has a length, or ends with the
  /// connection.
  static func write(_ head: HTTPResponse, isChunked: Bool, isLast: Bool, to buffer: inout ByteBuffer) {
    writeFields(of: head, to: &buffer)
    if isChunked { write("Transfer-Encoding", "chunked", to: &buffer) }
    end(isLast: isLast, &buffer)
  }

  /// Writes a part of a body in chunks (RFC 9112 §7.1). It must not be empty: that would end the body.
  static func write(chunk: ByteBuffer, to buffer: inout ByteBuffer) {
    buffer.writeString(String(chunk.readableBytes, radix: 16))
    buffer.writeString("\r\n")
    buffer.writeImmutableBuffer(chunk)
    buffer.writeString("\r\n")
  }

  private static func writeFields(of head: HTTPResponse, to buffer: inout ByteBuffer) {
    writeStatus(head.status, to: &buffer)
    let hasLength = head.status.hasLength
    for field in head.headerFields where hasLength || field.name != .contentLength {
      write(field.name.rawName, field.value, to: &buffer)
    }
  }

  /// Writes a whole answer.
  static func write(_ answer: BriefAnswer, isLast: Bool, to buffer: inout ByteBuffer) {
    if answer.status == .accepted {
      buffer.writeStaticString("HTTP/1.1 202 Accepted\r\nContent-Type: ")
    } else {
      writeStatus(answer.status, to: &buffer)
      buffer.writeStaticString("Content-Type: ")
    }
    buffer.writeString(answer.contentType)
    buffer.writeStaticString("\r\nLocation: ")
    buffer.writeString(answer.location)
    buffer.writeStaticString("\r\nContent-Length: ")
    buffer.writeString(String(answer.body.count))
    buffer.writeStaticString("\r\nX-Request-Id: ")
    buffer.writeString(answer.requestID)
    buffer.writeStaticString("\r\nDate: ")
    buffer.writeString(answer.date)
    buffer.writeStaticString("\r\n")
    end(isLast: isLast, &buffer)
    buffer.writeBytes(answer.body)
  }

  private static func writeStatus(_ status: HTTPResponse.Status, to buffer: inout ByteBuffer) {
    buffer.writeString("HTTP/1.1 ")
    buffer.writeString("\(status.code)")
    buffer.writeString(" ")
    buffer.writeString(status.reasonPhrase)
    buffer.writeString("\r\n")
  }

  private static func write(_ name: String, _ value: String, to buffer: inout ByteBuffer) {
    buffer.writeString(name)
    buffer.writeString(": ")
    buffer.writeString(value)
    buffer.writeString("\r\n")
  }

  private static func end(isLast: Bool, _ buffer: inout ByteBuffer) {
    buffer.writeString(isLast ? "Connection: close\r\n\r\n" : "\r\n")
  }
}

extension HTTPResponse.Status {
  /// Whether an answer says how long its body is. RFC 9110 §8.6: the others have no body, and a length would be that of
  /// another answer's.
  var hasLength: Bool { kind != .informational && code != 204 && code != 304 }
}
