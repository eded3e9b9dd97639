import NIOCore

/// One request on its way, and what has come back so far.
struct ClientStream {
  /// The request, whole: it may have to be sent again.
  let request: HTTP2Request
  /// Whom to tell about it.
  let submission: Submission
  /// When it was submitted.
  let submittedAt: NIODeadline
  /// How often it was sent before.
  let resends: Int
  /// When its time is up.
  var deadline: NIODeadline
  /// The id on the wire.
  var streamID: Int32 = 0
  /// How much of the body has gone out.
  var bodySent = 0
  /// The status, 0 until it has arrived.
  var status = 0
  /// The kept fields of the answer.
  var headers = HTTP2Headers()
  /// The body of the answer.
  var body: [UInt8] = []
  /// Whether the request's end has been reported; the stream lives on until HTTP/2 closes it.
  var isReported = false
  /// Whether we have sent RST_STREAM.
  var isReset = false

  /// Whether the whole request has been handed out.
  var isSent: Bool { bodySent == request.body.count }

  /// Marks the request's end as reported and gives what the report needs; nil if it has been reported already.
  mutating func takeReport() -> (ticket: UInt64, submission: Submission)? {
    if isReported { return nil }
    isReported = true
    return (request.ticket, submission)
  }

  /// The answer, moved out of the stream.
  mutating func takeResponse() -> HTTP2Response {
    let response = HTTP2Response(status: status, headers: headers, body: body)
    headers = HTTP2Headers()
    body = []
    return response
  }

  /// The next piece of the body to send.
  mutating func takeBody(limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool) {
    let start = bodySent
    bodySent = min(request.body.count, start + limit)
    return (request.body[start..<bodySent], isSent)
  }

  /// The request as a batch to be submitted once more, counted as sent `resends` times.
  func batch(resends: Int) -> RequestBatch {
    RequestBatch([request], submission: submission, submittedAt: submittedAt, resends: resends)
  }
}
