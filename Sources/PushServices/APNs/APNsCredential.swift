package import FanfareCore
import HTTP2Session
import Synchronization

/// The provider token of one sender, and the header fields that it is sent in.
package final class APNsCredential: Sendable {
  /// What requests have in common under one token; one block for each class of push, so that HPACK sees the same fields again and again.
  package struct Fields: Sendable {
    let generation: Int
    /// Counts the changes of key: what is signed with one may not go where another was used (Apple, "Establishing a token-based
    /// connection to APNs": a connection belongs to the team, and the family of keys, of its first push). Tokens that APNs calls
    /// expired count too: they make a connection unusable.
    let connectionGeneration: Int
    let expiresAt: UnixTime
    private let alertNow: HTTP2Headers
    private let alertWhenConvenient: HTTP2Headers
    private let background: HTTP2Headers

    init(token: ProviderTokenState.Token, connectionGeneration: Int, authority: String, topic: String) {
      generation = token.generation
      self.connectionGeneration = connectionGeneration
      expiresAt = token.issuedAt + ProviderTokenState.maximumAge
      func block(_ pushClass: APNsRenderer.Class) -> HTTP2Headers {
        var headers = HTTP2Headers()
        headers.append(":method", "POST")
        headers.append(":scheme", "https")
        headers.append(":authority", authority)
        // Apple writes the scheme in lower case.
        headers.append("authorization", "bearer " + token.value)
        headers.append("apns-topic", topic)
        for field in pushClass.fields { headers.append(field.name, field.value) }
        return headers
      }
      alertNow = block(.alertNow)
      alertWhenConvenient = block(.alertWhenConvenient)
      background = block(.background)
    }

    /// The block for a class of push.
    subscript(pushClass: APNsRenderer.Class) -> HTTP2Headers {
      switch pushClass {
      case .alertNow: alertNow
      case .alertWhenConvenient: alertWhenConvenient
      case .background: background
      }
    }
  }

  private struct Guarded {
    var signer: ProviderTokenSigner
    var connectionGeneration = 0
    var tokens = ProviderTokenState()
    var fields: Fields?
  }

  private let guarded: Mutex<Guarded>
  private let authority: String
  private let topic: String

  /// Takes the key; nothing is signed yet.
  package init(_ configuration: APNsConfiguration) throws(PushConfigurationError) {
    guarded = Mutex(Guarded(signer: try ProviderTokenSigner(configuration)))
    authority = configuration.port == 443 ? configuration.host : "\(configuration.host):\(configuration.port)"
    topic = configuration.topic
  }

  /// The fields to send now; a token that is due is signed, once whoever asks. Throws when it cannot be signed.
  package func fields(now: UnixTime) throws -> Fields {
    try guarded.withLock { guarded in
      let token = try guarded.tokens.token(now: now, sign: guarded.signer.sign)
      if let fields = guarded.fields, fields.generation == token.generation { return fields }
      let fields = Fields(token: token, connectionGeneration: guarded.connectionGeneration, authority: authority, topic: topic)
      guarded.fields = fields
      return fields
    }
  }

  /// Signs with this key from now on. False when it is the one in use.
  func use(_ signer: ProviderTokenSigner) -> Bool {
    guarded.withLock { guarded in
      guard !signer.isSame(as: guarded.signer) else { return false }
      guarded.signer = signer
      guarded.connectionGeneration += 1
      guarded.tokens.forget()
      return true
    }
  }

  /// Nothing from now on goes where requests went until now.
  func leaveConnections() {
    guarded.withLock { guarded in
      guarded.connectionGeneration += 1
      guarded.fields = nil
    }
  }

  /// See `ProviderTokenState.expired`.
  func expired(generation: Int, now: UnixTime) throws -> Bool {
    try guarded.withLock { guarded in
      try guarded.tokens.expired(generation: generation, now: now, sign: guarded.signer.sign)
    }
  }

  /// See `ProviderTokenState.updatedTooOften`.
  func updatedTooOften(generation: Int, now: UnixTime) {
    guarded.withLock { $0.tokens.updatedTooOften(generation: generation, now: now) }
  }
}
