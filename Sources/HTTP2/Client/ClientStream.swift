import NIOCore

/// A request in flight and the part of its answer received so far.
struct ClientStream {
  /// The whole request, because it may have to be sent again.
  let request: HTTP2Request
  let submission: Submission
  let submittedAt: NIODeadline
  /// How often it was sent before.
  let resends: Int
  var deadline: NIODeadline
  var streamID: Int32 = 0
  /// Bytes of the body that have been sent.
  var bodySent = 0
  /// 0 until it has arrived.
  var status = 0
  var headers = HTTP2Headers()
  var body: [UInt8] = []
  /// Whether the end has been reported; the stream lives until HTTP/2 closes it.
  var isReported = false
  /// Whether RST_STREAM has been sent.
  var isReset = false

  /// Whether the whole request has been sent.
  var isSent: Bool { bodySent == request.body.count }

  /// Marks the request as reported and returns what the report needs; nil if it was reported already.
  mutating func takeReport() -> (ticket: UInt64, submission: Submission)? {
    if isReported { return nil }
    isReported = true
    return (request.ticket, submission)
  }

  /// Moves the answer out of the stream.
  mutating func takeResponse() -> HTTP2Response {
    let response = HTTP2Response(status: status, headers: headers, body: body)
    headers = HTTP2Headers()
    body = []
    return response
  }

  /// Takes the next piece of the body.
  mutating func takeBody(limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool) {
    let start = bodySent
    bodySent = min(request.body.count, start + limit)
    return (request.body[start..<bodySent], isSent)
  }

  /// The request as a batch to submit again, counted as sent `resends` times.
  func batch(resends: Int) -> RequestBatch {
    RequestBatch([request], submission: submission, submittedAt: submittedAt, resends: resends)
  }
}

/// The streams of one connection by slot. Slots are reused, so that a stream is found by index, without hashing.
struct ClientStreamTable {
  private var slots: [ClientStream?] = []
  private var free: [Int] = []

  private(set) var count = 0

  /// The slots in use, in no particular order.
  var occupied: some Sequence<Int> { slots.indices.lazy.filter { slots[$0] != nil } }

  subscript(slot: Int) -> ClientStream? {
    _read { yield slots[slot] }
  }

  /// Changes the stream in place; returns nil if there is none. (A `_modify` accessor of the subscript would allocate
  /// its frame on the heap, at each of the half dozen changes of a request.)
  mutating func change<Result>(_ slot: Int, _ change: (inout ClientStream) -> Result) -> Result? {
    guard slots[slot] != nil else { return nil }
    return change(&slots[slot]!)  // It is there: see above.
  }

  /// The slot of the next stream.
  var nextSlot: Int { free.last ?? slots.count }

  /// Puts a stream into `nextSlot`.
  mutating func insert(_ stream: consuming ClientStream) {
    count += 1
    if let slot = free.popLast() { slots[slot] = stream } else { slots.append(stream) }
  }

  /// Empties `slot`. Returns its stream; nil if the slot is empty or the stream's end has been reported. (nghttp2 may
  /// name a request that it could not send twice: as not sent and as closed.)
  @discardableResult
  mutating func remove(_ slot: Int) -> ClientStream? {
    guard let stream = slots[slot].take() else { return nil }
    count -= 1
    free.append(slot)
    return stream.isReported ? nil : stream
  }
}
