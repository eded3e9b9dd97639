/// How one request ended. There is exactly one for every request submitted.
package struct HTTP2Completion: Sendable {
  /// The ticket of the request.
  package var ticket: UInt64

  /// The answer, whatever its status, or why there is none.
  package var result: Result<HTTP2Response, HTTP2RequestError>

  /// A completion.
  package init(ticket: UInt64, result: Result<HTTP2Response, HTTP2RequestError>) {
    self.ticket = ticket
    self.result = result
  }
}
