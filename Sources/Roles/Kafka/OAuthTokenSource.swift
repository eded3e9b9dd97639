import FanfareCore
import RDKafka

/// The tokens of OAUTHBEARER, shared by the Kafka clients of a process.
///
/// Each client asks for itself. A token that has more than half of its life before it serves all of them, so that a
/// start costs one request.
actor OAuthTokenSource: KafkaTokenSource {
  typealias Fetch = @Sendable () async throws -> (value: String, lifetime: Duration)

  private let principal: String
  private let extensions: [String: String]
  private let clock: any WallClock
  private let fetch: Fetch
  private var kept: (token: KafkaToken, freshUntil: UnixTime)?
  private var request: Task<KafkaToken, any Error>?

  /// `fetch` has its own time limit, and its errors contain no secret.
  init(principal: String, extensions: [String: String], clock: any WallClock, fetch: @escaping Fetch) {
    (self.principal, self.extensions, self.clock, self.fetch) = (principal, extensions, clock, fetch)
  }

  func token() async throws -> KafkaToken {
    if let kept, clock.now() < kept.freshUntil { return kept.token }
    if let request { return try await request.value }
    let request = Task { try await newToken() }
    self.request = request
    defer { self.request = nil }
    return try await request.value
  }

  private func newToken() async throws -> KafkaToken {
    let (value, lifetime) = try await fetch()
    let now = clock.now()
    let token = KafkaToken(
      value: value, expiresAtMilliseconds: (now + lifetime).milliseconds, principal: principal, extensions: extensions)
    kept = (token, now + lifetime / 2)
    return token
  }
}
