package import HTTPTypes
package import NIOCore

/// The answer to a request.
package struct Answer: Sendable {
  package var status: HTTPResponse.Status
  package var headers: HTTPFields
  package let body: AnswerBody

  /// Adds `Content-Length` if the length of the body is known.
  package init(status: HTTPResponse.Status, headers: HTTPFields = HTTPFields(), body: AnswerBody = .bytes(ByteBuffer()))
  {
    (self.status, self.headers, self.body) = (status, headers, body)
    if let length = body.length, self.headers[.contentLength] == nil { self.headers[.contentLength] = "\(length)" }
  }

  package init(status: HTTPResponse.Status, headers: HTTPFields = HTTPFields(), body: [UInt8]) {
    self.init(status: status, headers: headers, body: .bytes(ByteBuffer(bytes: body)))
  }

  /// The same answer to a HEAD request: without its body (RFC 9110 §9.3.2).
  package var withoutBody: Answer { Answer(status: status, headers: headers) }

  var head: HTTPResponse { HTTPResponse(status: status, headerFields: headers) }
}

package enum AnswerBody: Sendable {
  case bytes(ByteBuffer)
  /// A body that is made while the client reads it; see `AnswerWriter`. `length` is announced.
  case inParts(length: Int? = nil, @Sendable (inout AnswerWriter) async throws -> Void)

  var length: Int? {
    switch self {
    case .bytes(let bytes): bytes.readableBytes
    case .inParts(let length, _): length
    }
  }
}

/// An answer with few fields, for requests of which there are many: it has no list of fields.
package struct BriefAnswer: Sendable {
  package let status: HTTPResponse.Status
  package let contentType: String
  package let location: String
  package let body: [UInt8]
  package let requestID: String
  package let date: String

  package init(
    status: HTTPResponse.Status, contentType: String, location: String, body: [UInt8], requestID: String, date: String
  ) {
    (self.status, self.contentType, self.location) = (status, contentType, location)
    (self.body, self.requestID, self.date) = (body, requestID, date)
  }
}
