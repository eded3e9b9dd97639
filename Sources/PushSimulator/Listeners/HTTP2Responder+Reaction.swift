import HTTP2Client
import HTTP2Server
import NIOCore

extension HTTP2Responder {
  /// Does to the request what was decided. `goAwayReason` is the debug data of a GOAWAY.
  func perform(_ reaction: Reaction, goAwayReason: [UInt8]) {
    if let limit = reaction.streamLimit { connection.setMaximumConcurrentStreams(limit) }
    if reaction.goAway { connection.goAway(debugData: goAwayReason) }
    guard reaction.delay > .zero else { return perform(reaction.ending) }
    connection.eventLoop.scheduleTask(in: TimeAmount(reaction.delay)) { perform(reaction.ending) }
  }

  private func perform(_ ending: Reaction.Ending) {
    switch ending {
    case .answer(let answer):
      var headers = HTTP2Headers()
      for field in answer.headers { headers.append(field.name, field.value, indexing: .withoutIndexing) }
      respond(status: answer.status, headers: headers, body: answer.body)
    case .silence: break
    case .dropConnection: connection.close()
    case .reset(let code): reset(HTTP2ErrorCode(rawValue: code))
    }
  }
}
