import HTTP2
import HTTPTypes
import HummingbirdCore
import NIOCore

/// Requests that are answered without the task.
extension HTTP2Connection: DirectRequester {
  private static let acceptedStatus: HTTP2Headers = [":status": "202"]
  private static let okStatus: HTTP2Headers = [":status": "200"]

  /// Lets a whole request be answered directly. Returns false if it is the router's.
  func takeDirectly(_ stream: HTTP2Stream) -> Bool {
    // While a client does not read its answers, its requests wait for the task.
    guard let direct, let context, stream.head.isPost, !stream.head.isTooLarge, !stream.head.hasHost,
      handover.mayTake
    else { return false }
    stream.isRunning = true
    let isTaken = direct.routes.take(
      post: stream.head.path, fields: stream.head.direct, body: stream.collected, of: connection,
      number: Int(stream.id), for: NIOLoopBound(self, eventLoop: context.eventLoop), via: direct.mailbox)
    if !isTaken { stream.isRunning = false }
    return isTaken
  }

  func answer(_ answer: DirectAnswer, to number: Int) {
    guard let stream = endRun(Int32(number)) else { return }
    hasAnswers = true
    switch answer {
    case .refused(let response, let body): send(response.head, HTTP2Answer(body), on: stream)
    case .accepted(let send, let requestID, let date):
      let body = send.body
      var fields = answerFields
      answerFields = HTTP2Headers()
      fields.removeAll()
      fields.append("content-type", AcceptedSend.contentType)
      fields.append("location", send.location, indexing: .withoutIndexing)
      fields.append("content-length", String(body.count))
      fields.append("x-request-id", requestID, indexing: .withoutIndexing)
      fields.append("date", date)
      let status =
        switch send.status {
        case .accepted: Self.acceptedStatus
        case .ok: Self.okStatus
        default: HTTP2Headers(dictionaryLiteral: (":status", String(send.status.code)))
        }
      submit(status, fields, HTTP2Answer(body), on: stream)
      answerFields = fields
    }
  }

  func flushAnswers() {
    guard hasAnswers else { return }
    hasAnswers = false
    flush()
  }
}
