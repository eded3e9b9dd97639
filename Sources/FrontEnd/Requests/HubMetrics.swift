import FanfareCore
import Metrics

/// What is counted per hub; the handles are made once.
struct HubMetrics: Sendable {
  /// Sends that Kafka has acknowledged.
  let accepted: Counter
  /// Sends that are held until their time.
  let scheduled: Counter
  /// The time from a request to Kafka's acknowledgement of it.
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

  /// Counts a send that was not accepted.
  func refuse(_ code: ProblemCode) {
    refused[code]?.increment()
  }

  /// Runs what accepts one send, and counts it if it is refused.
  func countingRefusals<Value>(_ operation: () async throws -> Value) async throws -> Value {
    do {
      return try await operation()
    } catch {
      refuse(Refusal(describing: error).code)
      throw error
    }
  }
}
