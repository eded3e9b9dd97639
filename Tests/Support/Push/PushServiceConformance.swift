package import FanfareCore
import Testing

/// A push service that can be told what the next pushes meet, and a sender to it.
package protocol PushServiceUnderTest: Sendable {
  var sender: any PushSender { get }
  /// The push of a message to a device, valid for a minute.
  func push(_ ticket: UInt64) throws -> Push
  /// Lets all pushes meet this from now on.
  func order(_ trouble: PushServiceConformance.Trouble) throws
}

/// What a worker relies on when it hands pushes to a sender. The model of the simulation must do what the product's
/// sender and the push simulator do.
package struct PushServiceConformance: Sendable {
  /// What a push meets.
  package enum Trouble: Hashable, Sendable {
    case none, gone, unavailable, failing, refused, expired, goAway, connectionLost, silence
    case throttled(retryAfter: Int?)
  }

  private let service: any PushServiceUnderTest

  package init(_ service: any PushServiceUnderTest) { self.service = service }

  /// All scripts but that of silence, one after another.
  package func run() async throws {
    try await expect(.none, .accepted, status: 200...200)
    try await expect(.gone, .deviceGone, status: 404...410)
    try await expect(.throttled(retryAfter: 7), .retryLater, status: 429...429, retryAfter: .seconds(7), .device)
    try await expect(.throttled(retryAfter: nil), .retryLater, status: 429...429, .device)
    try await expect(.unavailable, .retryLater, status: 503...503, .service)
    try await expect(.failing, .retryLater, status: 500...500, .service)
    try await expect(.refused, .configurationError, status: 401...403, .credential)
    try await expect(.expired, .reauthenticate, status: 401...403, .credential)
    try await recover()
    try await expect(.connectionLost, .unknown, status: 0...0, .service)
    try await recover()
    try await expect(.goAway, .accepted, .retryHere, status: 0...200)
    try await recover()
  }

  /// A service that does not answer, and a sender whose time for an answer is short: the first pushes may not be sent at
  /// all.
  package func meetSilence() async throws {
    try service.order(.silence)
    var last: PushOutcome?
    for _ in 0..<1_000 where last?.verdict != .unknown { last = try await outcome() }
    #expect(last?.verdict == .unknown && last?.status == 0 && last?.isOutage == true)
  }

  private func expect(
    _ trouble: Trouble, _ verdicts: PushOutcome.Verdict..., status: ClosedRange<Int>, retryAfter: Duration? = nil,
    _ scope: PushOutcome.Scope? = nil
  ) async throws {
    try service.order(trouble)
    let outcome = try await outcome()
    #expect(verdicts.contains(outcome.verdict), "\(trouble): \(outcome)")
    #expect(status.contains(outcome.status), "\(trouble): \(outcome)")
    #expect(outcome.retryAfter == retryAfter, "\(trouble): \(outcome)")
    if let scope { #expect(outcome.scope == scope, "\(trouble): \(outcome)") }
    try service.order(.none)
  }

  /// After the trouble pushes are accepted again, at once or when connections and credentials are renewed.
  private func recover() async throws {
    var last: PushOutcome?
    for _ in 0..<1_000 where last?.verdict != .accepted { last = try await outcome() }
    #expect(last?.verdict == .accepted, "\(String(describing: last))")
  }

  private func outcome() async throws -> PushOutcome {
    let push = try service.push(1)
    let results = await withCheckedContinuation { continuation in
      service.sender.submit([push]) { continuation.resume(returning: $0) }
    }
    #expect(results.map(\.ticket) == [1])
    return results[0].outcome
  }
}
