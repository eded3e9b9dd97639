import FanfareCore
import Metrics
import Synchronization

/// A hub with its metrics and quotas.
struct HubEntry: Sendable {
  let name: HubName
  let authenticators: [any Authenticator]
  let metrics: HubMetrics
  /// Nil if the hub has no quota.
  let quotas: SenderQuotas?

  init(_ hub: FrontEndHub) {
    name = hub.name
    authenticators = hub.authenticators
    metrics = HubMetrics(hub: hub.name)
    quotas = hub.quota.map(SenderQuotas.init)
  }

  /// Returns the path of a send of this hub.
  func location(of send: SendID) -> String {
    name == .default ? "/api/sends/\(send)" : "/hubs/\(name)/api/sends/\(send)"
  }
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

/// Limits the rate of every sender of a hub (GCRA: one theoretical arrival time per sender).
///
/// Each front end counts only its own requests: a sender that uses several gets the quota at each.
final class SenderQuotas: Sendable {
  private struct State {
    /// The theoretical arrival time of each sender's next send, in Unix microseconds.
    /// The key is the sender's name in bytes.
    var arrivals: [[UInt8]: Int64] = [:]
    /// The number of senders from which on idle ones are removed.
    var sweepSize = SenderQuotas.smallestSweep
  }

  private static let smallestSweep = 4096

  private let quota: SendQuota
  private let state = Mutex(State())

  init(_ quota: SendQuota) { self.quota = quota }

  /// The number of remembered senders, including idle ones until the next sweep.
  var senders: Int { state.withLock { $0.arrivals.count } }

  /// Throws `.tooLarge` if a batch of `count` sends exceeds the burst.
  /// It could never be accepted as a whole.
  func requireRoomInBurst(for count: Int) throws(Refusal) {
    guard count > quota.burst else { return }
    throw Refusal(
      .tooLarge,
      "a batch with an Idempotency-Key is accepted as a whole, but it has \(count) sends and the quota allows "
        + "\(quota.burst) at once; divide it and use a key for each part")
  }

  /// Takes up to `count` permits of a sender's quota; `asWhole`: all or none.
  ///
  /// - Returns: The number of permits taken, and the seconds until one more is free (`asWhole`: until all are free).
  func take(_ count: Int, by sender: String, at now: UnixTime, asWhole: Bool = false) -> (taken: Int, retryAfter: Int) {
    let (sender, now) = (Array(sender.utf8), now.milliseconds * 1000)
    let (interval, window) = (
      1_000_000 / Double(quota.perSecond), Double(quota.burst) * 1_000_000 / Double(quota.perSecond)
    )
    return state.withLock { state in
      // At most one burst ahead: a clock that was set back must not lock senders out.
      let ahead = min(max(0, Double((state.arrivals[sender] ?? 0) - now)), window)
      let room = Int((window - ahead) / interval + 1e-9)
      let taken = asWhole && room < count ? 0 : min(count, room)
      let then = ahead + Double(taken) * interval
      state.arrivals[sender] = now + Int64(then.rounded(.up))
      sweep(&state, at: now)
      let wanted = asWhole ? Double(count) : 1
      return (taken, max(1, Int(((then + wanted * interval - window) / 1_000_000).rounded(.up))))
    }
  }

  /// Refunds permits of sends that were not accepted.
  /// Permits that have become free since they were taken, `elapsed` ago, are not refunded.
  func refund(_ count: Int, to sender: String, after elapsed: Duration) {
    // Rounded down, because taking rounds up.
    let time = Int64(Double(count) * 1_000_000 / Double(quota.perSecond) - elapsed / .microseconds(1))
    state.withLock { $0.arrivals[Array(sender.utf8)]? -= max(0, time) }
  }

  /// Removes senders whose whole burst is available again.
  private func sweep(_ state: inout State, at now: Int64) {
    guard state.arrivals.count > state.sweepSize else { return }
    state.arrivals = state.arrivals.filter { $0.value > now }
    state.sweepSize = max(Self.smallestSweep, 2 * state.arrivals.count)
  }
}

extension Refusal {
  /// The refusal of a send over its sender's quota.
  static func overQuota(retryAfter seconds: Int) -> Refusal {
    var refusal = Refusal(.overQuota, "the sender's quota is exceeded; send again in \(seconds) s")
    refusal.retryAfter = seconds
    return refusal
  }
}
