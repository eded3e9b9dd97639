package import FanfareCore
import HTTP2
import Synchronization

/// The provider token of one sender, and the header fields that carry it.
package final class APNsCredential: Sendable {
  /// The fields that requests share under one token: one block per class of push, so that HPACK sees the same fields
  /// again and again.
  package struct Fields: Sendable {
    let generation: Int
    /// Numbers the changes of key. APNs binds a connection to the team and the key family of its first push (Apple,
    /// "Establishing a token-based connection to APNs"), so a push signed with a new key must not use an old
    /// connection. Tokens that APNs reports as expired count too: they make a connection unusable.
    let connectionGeneration: Int
    let expiresAt: UnixTime
    private let alertNow: HTTP2Headers
    private let alertWhenConvenient: HTTP2Headers
    private let alertLow: HTTP2Headers
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
      alertLow = block(.alertLow)
      background = block(.background)
    }

    subscript(pushClass: APNsRenderer.Class) -> HTTP2Headers {
      switch pushClass {
      case .alertNow: alertNow
      case .alertWhenConvenient: alertWhenConvenient
      case .alertLow: alertLow
      case .background: background
      }
    }
  }

  private struct Guarded {
    var signer: ProviderTokenSigner
    var connectionGeneration = 0
    /// The first token that APNs reported as expired on connections of this generation. No other token may be used
    /// there: APNs would report it as expired too.
    var spentBy: Int?
    var tokens = ProviderTokenState()
    var fields: Fields?

    /// Moves all further requests to new connections.
    mutating func replaceConnections() {
      connectionGeneration += 1
      spentBy = nil
      fields = nil
    }
  }

  private let guarded: Mutex<Guarded>
  private let authority: String
  private let topic: String

  /// Reads the key; the first token is signed when it is needed.
  package init(_ configuration: APNsConfiguration) throws(PushConfigurationError) {
    guarded = Mutex(Guarded(signer: try ProviderTokenSigner(configuration)))
    authority = configuration.authority
    topic = configuration.topic
  }

  /// Returns the fields to use now, and signs a token if one is due. Throws if it cannot be signed.
  package func fields(now: UnixTime) throws -> Fields {
    try guarded.withLock { guarded in
      let token = try guarded.tokens.token(now: now, sign: guarded.signer.sign)
      if let spentBy = guarded.spentBy, spentBy != token.generation { guarded.replaceConnections() }
      if let fields = guarded.fields, fields.generation == token.generation { return fields }
      let fields = Fields(
        token: token, connectionGeneration: guarded.connectionGeneration, authority: authority, topic: topic)
      guarded.fields = fields
      return fields
    }
  }

  /// Signs with this key from now on. Returns false if it is the one in use.
  func use(_ signer: ProviderTokenSigner) -> Bool {
    guarded.withLock { guarded in
      guard !signer.isSame(as: guarded.signer) else { return false }
      guarded.signer = signer
      guarded.replaceConnections()
      guarded.tokens.reset()
      return true
    }
  }

  /// Moves all further requests to new connections, if the current ones still carry these fields.
  func replaceConnections(of fields: Fields) {
    guarded.withLock { guarded in
      if guarded.connectionGeneration == fields.connectionGeneration { guarded.replaceConnections() }
    }
  }

  /// APNs reports the token of these fields as expired; see `ProviderTokenState.expired`. The next token, whenever it
  /// is signed, uses other connections.
  func expired(_ fields: Fields, now: UnixTime) throws -> Bool {
    try guarded.withLock { guarded in
      if guarded.connectionGeneration == fields.connectionGeneration {
        guarded.spentBy = min(guarded.spentBy ?? fields.generation, fields.generation)
      }
      return try guarded.tokens.expired(generation: fields.generation, now: now, sign: guarded.signer.sign)
    }
  }

  /// Whether the token of these fields is in use and old enough to be replaced.
  func mayReplaceToken(of fields: Fields, now: UnixTime) -> Bool {
    guarded.withLock { $0.tokens.mayReplace(generation: fields.generation, now: now) }
  }

  /// See `ProviderTokenState.updatedTooOften`.
  func updatedTooOften(generation: Int, now: UnixTime) {
    guarded.withLock { $0.tokens.updatedTooOften(generation: generation, now: now) }
  }
}

/// When an answer causes the connections to be renewed.
///
/// Many pushes of one connection get the same answer, and Apple treats rapid reconnecting as an attack, so one renewal
/// serves them all, and the next one has to wait.
struct ConnectionRenewal: Sendable {
  /// The least time between two renewals.
  static let minimumInterval: Duration = .seconds(30)

  /// The number of renewals; a push carries the number under which it was submitted.
  private(set) var epoch = 0
  private var renewedAt: UnixTime?

  /// Whether to renew the connections because of an answer to a push of this epoch.
  mutating func isDue(epoch: Int, now: UnixTime) -> Bool {
    guard epoch == self.epoch else { return false }
    if let renewedAt, now >= renewedAt, now - renewedAt < Self.minimumInterval { return false }
    renewed(now: now)
    return true
  }

  /// The connections are renewed for another reason than an answer.
  mutating func renewed(now: UnixTime) {
    epoch += 1
    renewedAt = now
  }
}
