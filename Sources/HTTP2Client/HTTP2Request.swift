/// One request to send, with everything needed to send it once more.
package struct HTTP2Request: Sendable {
  /// The caller's own number, given back with the completion. It never goes over the wire.
  package var ticket: UInt64

  /// The fields equal among many requests: the pseudo fields `:method`, `:scheme` and `:authority` first, in this
  /// order, then `:path` if all have the same, then the rest.
  package var shared: HTTP2Headers

  /// The fields of this request alone. The first is `:path`, unless that is among the shared ones.
  package var headers: HTTP2Headers

  /// The body; a request without one ends with its header block.
  package var body: [UInt8]

  /// How long the request may take, from `submit` to the end of the answer, time in the queue and resends included.
  package var timeout: Duration

  /// How much of that may pass before it is begun: begun later it would be worth nothing. Never more than `timeout`.
  package var patience: Duration

  /// Whether it is one of many that nobody waits for in particular: where streams are scarce, it stands behind those
  /// that are not.
  package var isBulk: Bool

  /// A request. Its fields are sent as they are: nothing is added. Without a `patience` it waits as long as it may
  /// take.
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

  /// The size of the whole header block as the peer's `SETTINGS_MAX_HEADER_LIST_SIZE` counts it.
  var headerListSize: Int { shared.listSize + headers.listSize }
}
