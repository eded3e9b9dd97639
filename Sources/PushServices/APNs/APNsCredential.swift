package import FanfareCore
import HTTP2Client
import Synchronization

/// The provider token of one sender, and the header fields that it is sent in.
package final class APNsCredential: Sendable {
  /// What requests have in common under one token; one block for each class of push, so that HPACK sees the same fields
  /// again and again.
  package struct Fields: Sendable {
    let generation: Int
    /// Counts the changes of key: what is signed with one may not go where another was used (Apple, "Establishing a
    /// token-based connection to APNs": a connection belongs to the team, and the family of keys, of its first push).
    /// Tokens that APNs calls expired count too: they make a connection unusable.
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
    /// The first token that APNs has called expired on connections of this generation. Another one does not go there:
    /// the connection would go on calling it expired.
    var spentBy: Int?
    var tokens = ProviderTokenState()
    var fields: Fields?

    /// Nothing from now on goes where requests went until now.
    mutating func leaveConnections() {
      connectionGeneration += 1
      spentBy = nil
      fields = nil
    }
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
      if let spentBy = guarded.spentBy, spentBy != token.generation { guarded.leaveConnections() }
      if let fields = guarded.fields, fields.generation == token.generation { return fields }
      let fields = Fields(
        token: token, connectionGeneration: guarded.connectionGeneration, authority: authority, topic: topic)
      guarded.fields = fields
      return fields
    }
  }

  /// Signs with this key from now on. False when it is the one in use.
  func use(_ signer: ProviderTokenSigner) -> Bool {
    guarded.withLock { guarded in
      guard !signer.isSame(as: guarded.signer) else { return false }
      guarded.signer = signer
      guarded.leaveConnections()
      guarded.tokens.forget()
      return true
    }
  }

  /// Nothing from now on goes where requests with these fields went, if it still does.
  func leaveConnections(of fields: Fields) {
    guarded.withLock { guarded in
      if guarded.connectionGeneration == fields.connectionGeneration { guarded.leaveConnections() }
    }
  }

  /// APNs calls the token of these fields expired; see `ProviderTokenState.expired`. Whichever token takes its place,
  /// and whenever, goes to other connections.
  func expired(_ fields: Fields, now: UnixTime) throws -> Bool {
    try guarded.withLock { guarded in
      if guarded.connectionGeneration == fields.connectionGeneration {
        guarded.spentBy = min(guarded.spentBy ?? fields.generation, fields.generation)
      }
      return try guarded.tokens.expired(generation: fields.generation, now: now, sign: guarded.signer.sign)
    }
  }

  /// See `ProviderTokenState.updatedTooOften`.
  func updatedTooOften(generation: Int, now: UnixTime) {
    guarded.withLock { $0.tokens.updatedTooOften(generation: generation, now: now) }
  }
}
