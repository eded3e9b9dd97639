import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Synchronization

/// One request to WNS: gathers the answer, and notes whether anything of the request has been sent.
final class WNSExchange: HTTPClientResponseDelegate {
  typealias Response = HTTPClient.Response

  private let accumulator: ResponseAccumulator
  private let sent = Atomic(false)

  /// The exchange that begins with `request`; an answer of more bytes is an error.
  init(_ request: HTTPClient.Request, maximumAnswerBytes: Int) {
    accumulator = ResponseAccumulator(request: request, maxBodySize: maximumAnswerBytes)
  }

  /// Whether WNS may have seen the request.
  var wasSent: Bool { sent.load(ordering: .acquiring) }

  func didSendRequestHead(task: HTTPClient.Task<Response>, _ head: HTTPRequestHead) {
    sent.store(true, ordering: .releasing)
  }

  func didReceiveHead(task: HTTPClient.Task<Response>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    accumulator.didReceiveHead(task: task, head)
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Response>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    accumulator.didReceiveBodyPart(task: task, buffer)
  }

  func didReceiveError(task: HTTPClient.Task<Response>, _ error: any Error) {
    accumulator.didReceiveError(task: task, error)
  }

  func didFinishRequest(task: HTTPClient.Task<Response>) throws -> Response {
    try accumulator.didFinishRequest(task: task)
  }
}
