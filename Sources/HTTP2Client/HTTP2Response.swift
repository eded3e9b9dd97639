/// The answer to one request.
package struct HTTP2Response: Sendable {
  /// The HTTP status, 200…599.
  package var status: Int

  /// The fields named in `HTTP2PoolConfiguration.keptResponseHeaders`; all others are skipped.
  package var headers = HTTP2Headers()

  /// The body, at most `HTTP2PoolConfiguration.maximumResponseBodyBytes` long.
  package var body: [UInt8] = []
}

/// The end of one request; there is exactly one for every request submitted.
package struct HTTP2Completion: Sendable {
  package var ticket: UInt64

  /// The answer, with any status, or the reason why there is none.
  package var result: Result<HTTP2Response, HTTP2RequestError>
}
