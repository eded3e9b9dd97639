/// One request, with everything needed to send it again.
package struct HTTP2Request: Sendable {
  /// The caller's own number, returned with the completion. It is not sent.
  package var ticket: UInt64

  /// The fields that many requests share: the pseudo fields `:method`, `:scheme` and `:authority` first, in this order,
  /// then `:path` if it is shared too, then the rest.
  package var shared: HTTP2Headers

  /// The fields of this request only. The first is `:path`, unless that is shared.
  package var headers: HTTP2Headers

  /// The body; without one, the header block ends the request.
  package var body: [UInt8]

  /// The time from `submit` to the end of the answer, with the time in the queue and resends.
  package var timeout: Duration

  /// The part of `timeout` after which the request is not started any more, because its content has expired.
  package var patience: Duration

  /// Whether it is bulk: when streams are scarce, it waits behind requests that are not.
  package var isBulk: Bool

  /// The fields are sent unchanged, and none is added. Without a `patience` the request may be started during its whole
  /// `timeout`.
  package init(
    ticket: UInt64, shared: HTTP2Headers, headers: HTTP2Headers, body: [UInt8] = [], timeout: Duration,
    patience: Duration? = nil,
    isBulk: Bool = false
  ) {
    self.ticket = ticket
    self.shared = shared
    self.headers = headers
    self.body = body
    self.timeout = timeout
    self.patience = patience.map { min($0, timeout) } ?? timeout
    self.isBulk = isBulk
  }

  /// The size of the whole header block, as the peer's `SETTINGS_MAX_HEADER_LIST_SIZE` counts it.
  var headerListSize: Int { shared.listSize + headers.listSize }
}
