import AsyncHTTPClient
import FanfareCore
import Foundation
import FrontEnd
import Ledger
import NIOCore
import NIOPosix
import NIOSSL
import PushServices
import RDKafka
import Registry
import SettingsTable
import Store

/// Turns errors into words for operators: what failed, its address and key, and what to do.
///
/// The one place where errors of Foundation, SwiftNIO and librdkafka become text for people. Contains no secrets: of a
/// connection string only host and port appear.
package struct ErrorWords: Sendable {
  /// Address and key of the Kafka cluster.
  package let kafka: String
  /// Address and key of the registry's database.
  package let registry: String
  /// Address and key of the ledger's database.
  package let ledger: String

  /// Words for errors of a deployment with these settings; nil if they could not be read.
  package init(_ settings: Settings?) {
    kafka = settings?.kafka.place ?? "Kafka"
    registry = settings?.registry.place ?? "the registry"
    ledger = settings?.ledger.place ?? "the ledger"
  }

  /// The error as one line without an end.
  package func text(_ error: any Error) -> String {
    switch error {
    case let error as SettingsError: error.mistakes.map(\.line).joined(separator: "; ")
    case let error as RDKafkaError: text(error)
    case let error as PostgreSQLError: "\(registry): \(error)"
    case let error as RegistryError where error.code == .unavailable: "\(registry): \(error.message)"
    case let error as LedgerError where error.code == .unavailable: "\(ledger): \(error.message)"
    default: Self.text(error)
    }
  }

  private func text(_ error: RDKafkaError) -> String {
    if error.code == .timedOut || error.code == .unreachable {
      let limit = error.waited.map { " within \(($0 / .seconds(1)).text) s" } ?? ""
      // The time limit belongs to a request about all topics.
      let subject = error.waited == nil ? error.subject.map { ": \($0)" } ?? "" : ""
      return "\(kafka) did not answer\(limit)\(subject)"
    }
    if error.code == .unauthorized {
      return "\(kafka) does not permit this; see kafka.security and the ACLs of the cluster: \(error.words)"
    }
    if error.code == .unknownTopic { return "\(kafka): \(error.words); `fanfare topics create` creates topics" }
    return "\(kafka): \(error.words)"
  }

  /// Words for errors that have no address of this deployment.
  package static func text(_ error: any Error) -> String {
    switch error {
    case let error as any WordedError: error.description
    case let error as IOError: words(error.errnoCode)
    case let error as NIOConnectionError:
      if let cause = error.connectionErrors.last {
        "\(error.host):\(error.port): \(text(cause.error))"
      } else {
        "the name \(error.host) cannot be resolved"
      }
    case let error as SocketAddressError.UnknownHost: "the name \(error.host) cannot be resolved"
    case ChannelError.connectTimeout(let time): "no connection within \(time.nanoseconds / 1_000_000_000) s"
    case ChannelError.ioOnClosedChannel, ChannelError.alreadyClosed, ChannelError.eof: "the connection was closed"
    case let error as HTTPClientError: words(error)
    case NIOSSLError.handshakeFailed(let cause): words(cause)
    case is NIOSSLError: "TLS failed: the peer broke the protocol or closed the connection"
    case let error as NIOSSLExtraError: "TLS failed: \(error.description.prefix { $0 != ":" })"
    case let error as BoringSSLError: words(error)
    case let error as DecodingError: words(error)
    case is CancellationError: "it was interrupted"
    default: isForeign(error) ? foundation(error as NSError) : "\(error)"
    }
  }

  /// Whether the error is of another package, and so not written for operators.
  private static func isForeign(_ error: any Error) -> Bool {
    let type = String(reflecting: Swift.type(of: error))
    return [
      "AsyncHTTPClient", "Configuration", "Crypto", "Foundation", "GRDB", "JWTKit", "NIO", "Swift", "X509", "Yams",
    ]
    .contains { type.hasPrefix($0) }
  }

  /// The kernel's words for an error number.
  package static func words(_ number: Int32) -> String {
    let text = NSError(domain: NSPOSIXErrorDomain, code: Int(number)).localizedDescription
    // Foundation writes a sentence in front of them.
    return text.split(separator: ". ").last.map(String.init) ?? text
  }

  private static func words(_ error: HTTPClientError) -> String {
    switch error {
    case .connectTimeout, .tlsHandshakeTimeout: "no connection in time"
    case .readTimeout, .deadlineExceeded, .writeTimeout: "no answer in time"
    case .remoteConnectionClosed, .uncleanShutdown: "the connection was closed before the answer"
    case .invalidURL, .emptyHost, .emptyScheme: "the address is not a URL"
    case .cancelled, .requestStreamCancelled: "it was interrupted"
    default: "the request failed: \(error.shortDescription)"
    }
  }

  /// BoringSSL reports reasons such as `CERTIFICATE_VERIFY_FAILED` within other text.
  private static func words(_ error: BoringSSLError) -> String {
    guard case .sslError(let stack) = error else { return "TLS failed: the peer closed the connection" }
    let text = "\(stack)"
    let reasons = [
      ("CERTIFICATE_VERIFY_FAILED", "the certificate is not trusted, has expired, or is for another name"),
      ("WRONG_VERSION_NUMBER", "the peer does not speak TLS at this port"),
      ("HTTP_REQUEST", "the peer does not speak TLS at this port"),
      ("UNSUPPORTED_PROTOCOL", "no TLS version in common"), ("PROTOCOL_VERSION", "no TLS version in common"),
      ("EOF during handshake", "the peer closed the connection"),
      ("CERTIFICATE_REQUIRED", "the peer requires a client certificate"),
    ]
    return "TLS failed: \(reasons.first { text.contains($0.0) }?.1 ?? "the handshake was not accepted")"
  }

  private static func words(_ error: DecodingError) -> String {
    let path: [any CodingKey] =
      switch error {
      case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
        context.codingPath
      case .keyNotFound(let key, let context): context.codingPath + [key]
      @unknown default: []
      }
    let name = path.map(\.stringValue).joined(separator: ".")
    return name.isEmpty ? "it is not JSON" : "its member \(name) is missing or has another type than expected"
  }

  private static func foundation(_ error: NSError) -> String {
    let file = (error.userInfo[NSFilePathErrorKey] as? String) ?? (error.userInfo[NSURLErrorKey] as? URL)?.path
    let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
    let reason: String? =
      if cause.domain == NSPOSIXErrorDomain {
        words(Int32(truncatingIfNeeded: cause.code))
      } else {
        switch CocoaError.Code(rawValue: error.code) {
        case _ where error.domain != NSCocoaErrorDomain: nil
        case .fileNoSuchFile, .fileReadNoSuchFile: "No such file or directory"
        case .fileReadNoPermission, .fileWriteNoPermission: "Permission denied"
        case .fileWriteOutOfSpace: "No space left on device"
        default: nil
        }
      }
    guard let reason else { return "an unexpected error: \(error.domain) \(error.code)" }
    return file.map { "\($0): \(reason)" } ?? reason
  }
}

/// An error whose description is written for operators.
package protocol WordedError: Error, CustomStringConvertible {}

extension FrontEndError: WordedError {}
extension JSONError: WordedError {}
extension LedgerError: WordedError {}
extension PushConfigurationError: WordedError {}
extension RecordError: WordedError {}
extension RegistryError: WordedError {}
extension RegistryFileError: WordedError {}
extension SettingsError: WordedError {}
extension TagExpressionError: WordedError {}

extension KafkaSettings {
  /// The cluster's address with its key.
  var place: String {
    if let bootstrapServers { return "\(bootstrapServers) (kafka.bootstrapServers)" }
    guard let bootstrapServersFile else { return "Kafka" }
    // An unreadable file has an error of its own.
    let servers = (try? client("errors"))?.bootstrapServers
    return "\(servers ?? bootstrapServersFile) (kafka.bootstrapServersFile)"
  }
}

extension RegistrySettings {
  var place: String { postgreSQL.map { "\($0.address) (registry.postgres.url)" } ?? "\(path) (registry.path)" }
}

extension LedgerSettings {
  var place: String {
    postgreSQL.map { "\($0.database.address) (ledger.postgres.url)" } ?? "\(store.path) (ledger.path)"
  }
}
