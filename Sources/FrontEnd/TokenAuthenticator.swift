import Crypto
package import FanfareCore
import Metrics
import Synchronization

/// Authenticates the callers of a hub by signed tokens (JWT) of an identity provider, and remembers verified tokens.
///
/// A signature check costs some tens of microseconds. A remembered token is used until it expires or the keys change,
/// at most for `memory`. Only keyed digests of tokens are kept.
package final class TokenAuthenticator: Authenticator {
  /// The longest time for which a token is remembered.
  static let memory: Duration = .seconds(300)
  /// The most tokens that are remembered.
  static let capacity = 20_000

  private struct Entry {
    let principal: Principal
    let until: UnixTime
    /// The generation of the keys.
    let generation: Int
  }

  package let challenge = BearerChallenge.text
  private let rules: TokenRules
  private let policy: ScopePolicy
  private let keys: TokenKeys
  private let hub: HubName
  private let clock: any WallClock
  private let secret = SymmetricKey(size: .bits256)
  private let remembered = Mutex(ExpiringCache<[UInt8], Entry, UnixTime>(capacity: TokenAuthenticator.capacity))
  private let refused: [TokenRefusal: Counter]

  /// The keys must run as a service.
  package init(
    hub: HubName, rules: TokenRules, policy: ScopePolicy, keys: TokenKeys, clock: any WallClock = SystemWallClock()
  ) {
    self.hub = hub
    self.rules = rules
    self.policy = policy
    self.keys = keys
    self.clock = clock
    refused = Dictionary(
      uniqueKeysWithValues: TokenRefusal.allCases.map { reason in
        let dimensions = [("hub", hub.rawValue), ("reason", reason.rawValue)]
        return (reason, Counter(label: "fanfare_tokens_refused_total", dimensions: dimensions))
      })
  }

  package func authenticate(
    _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
  ) async throws -> Principal? {
    guard case .bearer(let token) = credentials, !token.hasPrefix(APIKey.prefix), hub == self.hub else { return nil }
    return try await verify(token)
  }

  private func verify(_ token: String) async throws(AuthenticationError) -> Principal? {
    // Before the digest, whose cost depends on the size.
    guard token.utf8.count <= JSONWebToken.maximumSize else { return refuse(.malformed) }
    let now = clock.now()
    let digest = Array(HMAC<SHA256>.authenticationCode(for: Array(token.utf8), using: secret))
    if let generation = keys.generation(at: now), let entry = remembered.withLock({ $0.value(digest, at: now) }),
      entry.generation == generation
    {
      return principal(of: entry)
    }
    let parsed: JSONWebToken
    do throws(TokenRefusal) { parsed = try JSONWebToken(token) } catch { return refuse(error) }
    guard let algorithm = TokenAlgorithm(rawValue: parsed.algorithm), rules.algorithms.contains(algorithm) else {
      return refuse(.algorithm)
    }
    let found: (key: VerificationKey, generation: Int)?
    do {
      found = try await keys.key(parsed.keyID, algorithm)
    } catch {
      if error == .notFetched { _ = refuse(.unknownKey) }
      throw error
    }
    guard var (key, generation) = found else { return refuse(.unknownKey) }
    if parsed.keyID == nil, !key.verifies(parsed) {
      // The issuer may have replaced its only key.
      guard let other = try await keys.key(nil, algorithm, rejected: generation) else { return refuse(.signature) }
      (key, generation) = other
    }
    guard key.verifies(parsed) else { return refuse(.signature) }
    do throws(TokenRefusal) {
      let identity = try rules.identity(of: parsed.payload, hub: hub, at: now)
      let principal = Principal(user: identity.user, scopes: policy.scopes(of: identity))
      let entry = Entry(
        principal: principal, until: min(identity.expiresAt, now + Self.memory), generation: generation)
      remembered.withLock { $0.insert(entry, for: digest, from: now, to: entry.until) }
      return self.principal(of: entry)
    } catch {
      return refuse(error)
    }
  }

  /// The principal of a token that is remembered.
  private func principal(of entry: Entry) -> Principal {
    Principal(
      user: entry.principal.user, scopes: entry.principal.scopes,
      validity: Validity { [clock, keys] in
        let now = clock.now()
        return now < entry.until && keys.generation(at: now) == entry.generation
      })
  }

  private func refuse(_ reason: TokenRefusal) -> Principal? {
    refused[reason]?.increment()
    return nil
  }
}

extension ScopePolicy {
  /// The scopes of a token's bearer. If tokens name scopes, those take the place of `everyone`.
  func scopes(of identity: TokenIdentity) -> Set<Scope> {
    let groups = Set(identity.groups.map { ExactName($0) })
    guard let names = identity.scopes else { return scopes(of: identity.user, groups: groups) }
    // Tokens usually name scopes of other services too.
    let named = Set(names.compactMap { Scope(rawValue: $0) })
    return ScopePolicy(everyone: named, users: users, groups: self.groups).scopes(of: identity.user, groups: groups)
  }
}

/// The challenge for bearer tokens (RFC 6750 §3).
enum BearerChallenge {
  static let text = #"Bearer realm="fanfare""#
  /// After a token that was refused. It does not say why.
  static let afterInvalidToken = #"Bearer realm="fanfare", error="invalid_token""#
}
