import AsyncHTTPClient
import FanfareCore
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import PushServices
import Synchronization

/// Pushes to the invented service: one POST to `/page/<number>`, with the secret.
final class PagerSender: PushSender {
  let platform = Pager.platform
  let readinessProblem: String? = nil

  private let url: String
  private let secret: Mutex<String>
  private let client: HTTPClient

  init(url: String, secret: String, trustRoots: String?, _ resources: SenderResources) {
    self.url = url
    self.secret = Mutex(secret)
    var configuration = HTTPClient.Configuration()
    if let trustRoots {
      var tls = TLSConfiguration.makeClientConfiguration()
      tls.trustRoots = .certificates((try? NIOSSLCertificate.fromPEMBytes(Array(trustRoots.utf8))) ?? [])
      configuration.tlsConfiguration = tls
    }
    client = HTTPClient(eventLoopGroupProvider: .shared(resources.eventLoopGroup), configuration: configuration)
  }

  /// Returns false if it is the secret in use.
  func use(secret new: String) -> Bool {
    secret.withLock { current in
      defer { current = new }
      return current != new
    }
  }

  func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    do throws(ContentFault) {
      return RenderedPush(headers: [], body: Array(try Pager.text(of: send.content).utf8))
    } catch {
      throw error.outcome
    }
  }

  func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    for push in pushes {
      let outcome: EventLoopFuture<PushOutcome>
      do {
        let request = try HTTPClient.Request(
          url: "\(url)/page/\(push.handle)", method: .POST,
          headers: ["authorization": secret.withLock { $0 }, "pager-id": push.id.description],
          body: .bytes(push.rendering.body))
        outcome = client.execute(request: request, deadline: .now() + .seconds(10)).map(Self.outcome)
      } catch {
        outcome = client.eventLoopGroup.any().makeSucceededFuture(PushOutcome(.malformed, reason: "BadRequest"))
      }
      outcome.whenComplete { result in
        let outcome = (try? result.get()) ?? PushOutcome(.unknown, reason: "ConnectionLost")
        completion([PushResult(ticket: push.ticket, outcome: outcome)])
      }
    }
  }

  private static func outcome(of response: HTTPClient.Response) -> PushOutcome {
    let status = Int(response.status.code)
    return switch status {
    case 200: PushOutcome(.accepted, status: status)
    case 401: PushOutcome(.configurationError, reason: "BadSecret", status: status)
    case 410: PushOutcome(.deviceGone, reason: "NoSuchNumber", status: status)
    default: PushOutcome(.retryLater, reason: "Busy", status: status)
    }
  }

  func run() async throws {
    // Ends with the worker.
    let (ending, continuation) = AsyncStream.makeStream(of: Void.self)
    await withTaskCancellationHandler {
      for await _ in ending {}
    } onCancel: {
      continuation.finish()
    }
    try await client.shutdown()
  }
}
