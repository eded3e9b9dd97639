import AsyncHTTPClient
import AzureHub
import FanfareCore
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Roles

/// Reads the registrations of a hub page by page through the REST API of Azure Notification Hubs.
///
/// It keeps to a rate, and waits when the service asks for it.
struct AzurePages: Sendable {
  /// The service refused a request for good, or was not reached in all attempts. Names no key and no registration.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The most registrations that Azure puts on a page.
  static let size = 100
  private static let attempts = 8
  /// The longest answer: a template has at most some kilobytes.
  private static let limit = 16 << 20
  private static let longestWait: Duration = .seconds(60)

  private let http: HTTPClient
  private let connection: AzureConnection
  private let hub: String
  /// Called before a wait, with the reason.
  private let complain: @Sendable (String) -> Void

  /// Runs `body` with a reader, and closes its connections afterwards.
  static func with<Value>(
    _ connection: AzureConnection, hub: String, trustRootsFile: String?,
    complain: @escaping @Sendable (String) -> Void, _ body: (AzurePages) async throws -> Value
  ) async throws -> Value {
    var configuration = HTTPClient.Configuration()
    configuration.timeout.connect = .seconds(10)
    if let trustRootsFile {
      var tls = TLSConfiguration.makeClientConfiguration()
      do { tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(trustRootsFile)) } catch {
        throw Failure(description: "--trust-roots must name a file with certificates in PEM: \(trustRootsFile)")
      }
      configuration.tlsConfiguration = tls
    }
    let http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    let result: Result<Value, any Error>
    do {
      result = .success(
        try await body(AzurePages(http: http, connection: connection, hub: hub, complain: complain)))
    } catch {
      result = .failure(error)
    }
    try await http.shutdown()
    return try result.get()
  }

  /// The page at a continuation, as of `time`; the first one without.
  func page(at continuation: String?, asOf time: UnixTime) async throws -> (entries: AzureRegistrations, next: String?)
  {
    let backoff = Backoff(first: .seconds(1), limit: Self.longestWait)
    for attempt in 1...Self.attempts {
      let problem: String
      var pause = backoff.wait(attempt - 1)
      do {
        let response = try await http.execute(request(at: continuation), timeout: .seconds(60))
        let body = try await response.body.collect(upTo: Self.limit)
        let status = Int(response.status.code)
        if status == 200 {
          let next = response.headers.first(name: "x-ms-continuationtoken")
          let list = try AzureRegistrations(feed: Array(body.readableBytesView)[...], at: time)
          return (list, next.flatMap { $0.isEmpty ? nil : $0 })
        }
        let given = response.headers.first(name: "retry-after").flatMap { Int($0) }
        // 403 without Retry-After is a missing right.
        guard [408, 429, 500, 502, 503, 504].contains(status) || (status == 403 && given != nil) else {
          throw Failure(description: Self.refusal(status, rule: connection.rule, hub: hub))
        }
        if let given { pause = max(.seconds(given), pause) }
        problem = "the answer has status \(status)"
      } catch let failure as Failure {
        throw failure
      } catch let error as AzureRegistrations.NoList {
        throw Failure(description: "\(connection.base): \(error)")
      } catch {
        problem = ErrorWords.text(error)
      }
      guard attempt < Self.attempts else {
        throw Failure(description: "\(connection.base): \(problem), \(attempt) times")
      }
      pause = min(pause, Self.longestWait)
      complain("\(connection.base): \(problem); the next attempt follows in \(pause.components.seconds) s")
      try await Task.sleep(for: pause)
    }
    throw Failure(description: "\(connection.base) was not reached")
  }

  private func request(at continuation: String?) -> HTTPClientRequest {
    var url = "\(connection.base)/\(hub)/registrations?api-version=2020-06&$top=\(Self.size)"
    // As it came: it is encoded already.
    if let continuation { url += "&continuationtoken=\(continuation)" }
    var request = HTTPClientRequest(url: url)
    request.headers.add(name: "authorization", value: connection.authorization(for: hub, at: Date()))
    request.headers.add(name: "user-agent", value: "fanfare/\(Build.version)")
    return request
  }

  private static func refusal(_ status: Int, rule: String, hub: String) -> String {
    switch status {
    case 401: "status 401: the rule \(rule) or its key is wrong, or the clock of this machine is"
    case 403: "status 403: the rule \(rule) needs the right Manage"
    case 404: "status 404: there is no hub \(hub)"
    default: "unexpected status \(status)"
    }
  }
}
