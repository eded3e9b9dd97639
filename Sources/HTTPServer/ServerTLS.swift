import NIOCore
import NIOSSL
import NIOTLS
import SwiftASN1
import Synchronization
import X509

/// TLS of a listener. New connections use the identity that was given last. Thread-safe.
///
/// TLS 1.2 or later with forward secrecy and authenticated encryption, HTTP/2 or HTTP/1.1 by ALPN.
package final class ServerTLS: Sendable {
  /// Whether a client must present a certificate.
  package enum ClientCertificates: String, CaseIterable, Sendable {
    /// Clients are not asked for a certificate.
    case none
    /// A certificate that a client presents must be valid.
    case optional
    /// A client without a valid certificate cannot connect.
    case required
  }

  /// Why files cannot be used for TLS.
  package enum Unusable: Error {
    case certificates, key, clientAuthorities
    /// Two client authorities have the same name, and nothing else tells which of them has issued a certificate.
    case equalAuthorities
  }

  /// The server's certificates and key, and the authorities of its clients.
  package struct Identity: Sendable {
    fileprivate let certificates: [NIOSSLCertificate]
    fileprivate let key: NIOSSLPrivateKey
    fileprivate let clientAuthorities: [NIOSSLCertificate]

    /// Parses PEM. The server's certificate comes first, then those of intermediate authorities. Throws `Unusable`.
    package init(certificates: String, key: String, clientAuthorities: String? = nil) throws(Unusable) {
      self.certificates = try Self.certificates(certificates, or: .certificates)
      do { self.key = try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem) } catch { throw .key }
      self.clientAuthorities =
        if let clientAuthorities { try Self.certificates(clientAuthorities, or: .clientAuthorities) } else { [] }
      guard Self.areDistinguishable(self.clientAuthorities) else { throw .equalAuthorities }
    }

    /// Whether each certificate's issuer can be found among the authorities. BoringSSL looks it up by the name, and by
    /// the key identifier if both certificates have one. It tries no second issuer if the signature does not match.
    private static func areDistinguishable(_ authorities: [NIOSSLCertificate]) -> Bool {
      // A certificate that only BoringSSL can read is left to it.
      let readable = authorities.compactMap { try? Certificate(derEncoded: $0.toDERBytes()) }
      return Dictionary(grouping: readable, by: \.subject).values.allSatisfy { namesakes in
        let keys = Set(namesakes.map(\.publicKey))
        // An unreadable identifier is none.
        let identifiers = namesakes.map { try? $0.extensions.subjectKeyIdentifier?.keyIdentifier }
        return keys.count == 1 || (!identifiers.contains(nil) && Set(identifiers).count == keys.count)
      }
    }

    private static func certificates(_ text: String, or unusable: Unusable) throws(Unusable) -> [NIOSSLCertificate] {
      let found: [NIOSSLCertificate]
      do { found = try NIOSSLCertificate.fromPEMBytes(Array(text.utf8)) } catch { throw unusable }
      guard !found.isEmpty else { throw unusable }
      return found
    }
  }

  private struct State {
    var context: NIOSSLContext
    var identity: Identity
  }

  /// The protocols of the listener, the preferred one first.
  package static let protocols = ["h2", "http/1.1"]

  private let clientCertificates: ClientCertificates
  private let offered: [String]
  private let state: Mutex<State>

  /// Throws if the key does not belong to the first certificate.
  ///
  /// `protocols`: those that are spoken, the preferred one first.
  package init(
    _ identity: Identity, clientCertificates: ClientCertificates = .none, protocols: [String] = ServerTLS.protocols
  ) throws {
    (self.clientCertificates, offered) = (clientCertificates, protocols)
    state = Mutex(State(context: try Self.context(identity, clientCertificates, protocols), identity: identity))
  }

  /// When the certificate expires, in seconds since 1970.
  package var expirySeconds: Int64 {
    Int64(state.withLock { $0.identity.certificates.first?.notValidAfter ?? 0 })
  }

  /// Uses another identity for new connections. Returns false if it is in use already.
  /// Throws, and keeps the former one, if it is unusable.
  package func use(_ identity: Identity) throws -> Bool {
    let context = try Self.context(identity, clientCertificates, offered)
    return state.withLock { state in
      defer { state = State(context: context, identity: identity) }
      return identity.certificates != state.identity.certificates || identity.key != state.identity.key
        || identity.clientAuthorities != state.identity.clientAuthorities
    }
  }

  /// Adds TLS to a connection that was just accepted.
  func addHandlers(to pipeline: ChannelPipeline.SynchronousOperations, of connection: ClientConnection) throws {
    try pipeline.addHandler(ProtocolOfferCheck())
    try pipeline.addHandler(NIOSSLServerHandler(context: state.withLock { $0.context }))
    if clientCertificates != .none { try pipeline.addHandler(ClientCertificateReader(connection)) }
  }

  private static func context(_ identity: Identity, _ clients: ClientCertificates, _ protocols: [String]) throws
    -> NIOSSLContext
  {
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: identity.certificates.map { .certificate($0) }, privateKey: .privateKey(identity.key))
    configuration.minimumTLSVersion = .tlsv12
    // Of TLS 1.2; all of TLS 1.3 are like these (RFC 9325 §4.2, and RFC 9113 §9.2.2 forbids the others to HTTP/2).
    configuration.cipherSuiteValues = [
      .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
      .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
      .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ]
    configuration.applicationProtocols = protocols
    // A client that does not answer the closing must not keep its place.
    configuration.shutdownTimeout = .seconds(1)
    switch clients {
    case .none: configuration.certificateVerification = .none
    case .optional: configuration.certificateVerification = .optionalVerification
    // A client has no host name.
    case .required: configuration.certificateVerification = .noHostnameVerification
    }
    if clients != .none {
      configuration.trustRoots = .certificates(identity.clientAuthorities)
      configuration.sendCANameList = true
    }
    return try NIOSSLContext(configuration: configuration)
  }
}

/// Notes the client's certificate after the handshake, which has verified it.
private final class ClientCertificateReader: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private let connection: ClientConnection

  init(_ connection: ClientConnection) { self.connection = connection }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted = event as? TLSUserEvent {
      do {
        if let certificate = try context.pipeline.syncOperations.nioSSL_peerCertificate() {
          connection.certificate = try certificate.toDERBytes()
        }
      } catch {
        // Without it the caller might pass for somebody else.
        context.close(promise: nil)
      }
    }
    context.fireUserInboundEventTriggered(event)
  }
}
