import FanfareCore
import HTTP2
import NIOCore
import NIOSSL
import Synchronization

/// Why a sender cannot be made from its configuration. Names the field, never its value.
package struct PushConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The configuration's property, or `serviceAccount.` and a member of the key file.
  package let field: String
  /// The end of a sentence that begins with the field.
  package let problem: String

  package var description: String { "\(field) \(problem)" }
}

/// A value with a secret. It prints as its `description`, which must not contain the secret; `dump` and the
/// interpolation of an enclosing value print nothing more.
package protocol Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// What the configurations of the senders that use HTTP/2 have in common.
protocol HTTP2SenderConfiguration: Sendable {
  var host: String { get }
  var port: Int { get }
  var trustRoots: String? { get }
  var maximumConnections: Int { get }
  var maximumStreamsPerConnection: Int { get }
  var maximumQueuedPushes: Int { get }
  var requestTimeout: Duration { get }
}

extension HTTP2SenderConfiguration {
  /// The value of `:authority`.
  var authority: String { port == 443 ? host : "\(host):\(port)" }

  /// The configuration of the sender's pool, without the settings that differ between the services.
  func poolConfiguration(tls: TLSConfiguration) -> HTTP2PoolConfiguration {
    var pool = HTTP2PoolConfiguration(host: host, port: port, tls: tls)
    pool.maximumConnections = maximumConnections
    pool.maximumStreamsPerConnection = maximumStreamsPerConnection
    pool.maximumQueuedRequests = maximumQueuedPushes
    pool.keptResponseHeaders = ["retry-after"]
    pool.cancellationTimeout = requestTimeout
    return pool
  }

  func validateConnection() throws(PushConfigurationError) {
    try ConfigurationCheck.host(host, field: "host")
    try ConfigurationCheck.port(port, field: "port")
    try ConfigurationCheck.positive(maximumConnections, field: "maximumConnections")
    try ConfigurationCheck.positive(maximumStreamsPerConnection, field: "maximumStreamsPerConnection")
    try ConfigurationCheck.positive(maximumQueuedPushes, field: "maximumQueuedPushes")
    try ConfigurationCheck.positive(requestTimeout, field: "requestTimeout")
  }
}

/// Checks of single fields. Each throws an error that names the field.
enum ConfigurationCheck {
  /// A host name or address, without a character that could end it inside a URL or a header field.
  static func host(_ value: String, field: String) throws(PushConfigurationError) {
    let isSound = value.utf8.allSatisfy { $0.isLetterOrDigit || "-._".utf8.contains($0) }
    guard isSound, (1...253).contains(value.utf8.count) else {
      throw PushConfigurationError(field: field, problem: "must be a host name")
    }
  }

  static func port(_ value: Int, field: String) throws(PushConfigurationError) {
    guard (1...65_535).contains(value) else {
      throw PushConfigurationError(field: field, problem: "must be a port, 1 to 65535")
    }
  }

  /// A count or a time.
  static func positive(_ value: some Comparable & AdditiveArithmetic, field: String) throws(PushConfigurationError) {
    guard value > .zero else { throw PushConfigurationError(field: field, problem: "must be more than 0") }
  }

  /// An identifier or secret: visible ASCII without spaces, not empty.
  static func token(_ value: String, field: String) throws(PushConfigurationError) {
    guard HeaderValue.isVisibleASCII(value) else {
      throw PushConfigurationError(
        field: field, problem: value.isEmpty ? "is missing" : "must be visible ASCII without spaces")
    }
  }

  /// An `https` URL, because secrets are sent to it.
  static func httpsURL(_ value: String, field: String) throws(PushConfigurationError) {
    guard value.lowercased().hasPrefix("https://"), value.utf8.count > 8, HeaderValue.isVisibleASCII(value) else {
      throw PushConfigurationError(field: field, problem: "must be an https URL")
    }
  }
}

/// Checks of header field values that come from outside.
enum HeaderValue {
  /// Whether the text is visible ASCII without spaces, and not empty: the alphabet of identifiers, tokens and secrets.
  static func isVisibleASCII(_ value: String) -> Bool {
    !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }
}

extension TLSConfiguration {
  /// TLS 1.2 or later with host name verification, against the given roots (PEM) or the system's. Throws if the PEM
  /// holds no certificate.
  static func pushService(trustRoots: String?) throws(PushConfigurationError) -> TLSConfiguration {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    tls.certificateVerification = .fullVerification
    // A peer that does not answer close_notify must not delay the end of the connection.
    tls.shutdownTimeout = .seconds(1)
    guard let trustRoots else { return tls }
    do {
      let certificates = try NIOSSLCertificate.fromPEMBytes(Array(trustRoots.utf8))
      guard !certificates.isEmpty else {
        throw PushConfigurationError(field: "trustRoots", problem: "holds no certificate")
      }
      tls.trustRoots = .certificates(certificates)
      return tls
    } catch {
      throw PushConfigurationError(field: "trustRoots", problem: "must be certificates in PEM")
    }
  }
}

/// The problems that keep a sender from working, at most one per subject.
///
/// A problem stays until it is cleared. A `connection` problem also ends by itself: a pool without requests does not
/// reconnect, and of many WNS hosts only one may have failed.
final class ReadinessProblems: Sendable {
  /// The subjects, the worst last.
  enum Subject: Int, CaseIterable, Sendable {
    case connection
    case answer
    case credential
  }

  private struct Problem {
    let text: String
    let notedAt: ContinuousClock.Instant

    func holds(for subject: Subject, at now: ContinuousClock.Instant) -> Bool {
      subject != .connection || now - notedAt < connectionProblemLifetime
    }
  }

  /// How long a `connection` problem holds after the last failure; a sender with work to do tries more often.
  static let connectionProblemLifetime: Duration = .seconds(60)

  private let current = Mutex<[Subject: Problem]>([:])

  /// The worst current problem; nil if there is none.
  func worst(at now: ContinuousClock.Instant = .now) -> String? {
    current.withLock { $0 }.filter { $0.value.holds(for: $0.key, at: now) }
      .max { $0.key.rawValue < $1.key.rawValue }?.value.text
  }

  /// Notes a problem. Returns true if it was not known in the same words, so that it is worth a log line.
  @discardableResult
  func note(_ subject: Subject, _ text: String, at now: ContinuousClock.Instant = .now) -> Bool {
    let last = current.withLock { $0.updateValue(Problem(text: text, notedAt: now), forKey: subject) }
    guard let last, last.holds(for: subject, at: now) else { return true }
    return last.text != text
  }

  func clear(_ subjects: Subject...) {
    current.withLock { current in
      guard !current.isEmpty else { return }
      for subject in subjects { current[subject] = nil }
    }
  }
}
