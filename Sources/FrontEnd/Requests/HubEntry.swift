import FanfareCore
import HTTPServer
import Metrics

/// A hub with its metrics and quotas. A class, because each request hands it on several times.
final class HubEntry: Sendable {
  let name: HubName
  let authenticators: [any Authenticator]
  let metrics: HubMetrics
  let quotas: HubQuotas
  /// Nil: sends are not traced.
  let tracing: Tracing?
  /// The path of this hub's sends.
  private let sends: String

  init(_ hub: FrontEndHub, quotas store: any CallerQuotaStore, tracing: Tracing? = nil) {
    self.tracing = tracing
    name = hub.name
    sends = hub.name == .default ? "/api/sends/" : "/hubs/\(hub.name)/api/sends/"
    authenticators = hub.authenticators
    metrics = HubMetrics(hub: hub.name)
    quotas = HubQuotas(hub.quotas, hub: hub.name, store: store)
  }

  /// Returns the path of a send of this hub.
  func location(of send: SendID) -> String { sends + send.description }
}

/// The counters of one hub.
struct HubMetrics: Sendable {
  /// Sends that Kafka acknowledged.
  let accepted: Counter
  /// Sends that are held until they are due.
  let scheduled: Counter
  /// The time from a request to Kafka's acknowledgement.
  let acceptance: Timer
  private let refused: [ProblemCode: Counter]

  init(hub: HubName) {
    accepted = Counter(label: "fanfare_sends_accepted_total", dimensions: [("hub", hub.rawValue)])
    scheduled = Counter(label: "fanfare_sends_scheduled_total", dimensions: [("hub", hub.rawValue)])
    acceptance = Timer(label: "fanfare_accept_seconds", dimensions: [("hub", hub.rawValue)])
    refused = Dictionary(
      uniqueKeysWithValues: ProblemCode.allCases.map { code in
        (
          code,
          Counter(label: "fanfare_sends_refused_total", dimensions: [("hub", hub.rawValue), ("code", code.rawValue)])
        )
      })
  }

  /// Counts a refused send.
  func refuse(_ code: ProblemCode) { refused[code]?.increment() }

  /// Begins to accept one send, and counts a refusal, at once or later.
  func countingRefusals(_ begin: () throws -> Reply) throws -> Reply {
    do {
      let reply = try begin()
      guard case .later(let work) = reply else { return reply }
      return .later { exchange in try await countingRefusals { try await work(exchange) } }
    } catch {
      refuse(Refusal(describing: error).code)
      throw error
    }
  }

  /// Runs an operation that accepts one send, and counts a refusal if it throws.
  func countingRefusals<Value>(_ operation: () async throws -> Value) async throws -> Value {
    do {
      return try await operation()
    } catch {
      refuse(Refusal(describing: error).code)
      throw error
    }
  }
}
