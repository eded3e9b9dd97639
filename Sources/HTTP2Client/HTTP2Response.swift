/// The answer to one request.
package struct HTTP2Response: Sendable {
  /// The HTTP status, 200…599.
  package var status: Int

  /// The fields whose names are in `HTTP2PoolConfiguration.keptResponseHeaders`; all others are skipped unread.
  package var headers: HTTP2Headers

  /// The body, at most `HTTP2PoolConfiguration.maximumResponseBodyBytes` long.
  package var body: [UInt8]

  /// An answer.
  package init(status: Int, headers: HTTP2Headers = HTTP2Headers(), body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}
