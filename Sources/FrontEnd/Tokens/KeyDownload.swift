import AsyncHTTPClient
import FanfareCore
import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOSSL

/// Why a key set could not be fetched. Contains nothing of an answer.
struct KeyFetchError: Error, CustomStringConvertible {
  let description: String
}

/// A key set at a URL.
struct KeyDownload: Sendable {
  let url: String
  /// Certificates (PEM) to trust instead of the system's.
  let trustRoots: [UInt8]?
  /// The time limit of a fetch.
  let timeout: Duration

  /// Calls `body` with a function that fetches the key set.
  func withClient(_ body: (@Sendable () async throws(KeyFetchError) -> [UInt8]) async -> Void) async throws {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    if let trustRoots { tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(trustRoots)) }
    // Redirects are refused: they could lead to another host's keys.
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls, redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5)))
    configuration.httpVersion = .http1Only
    configuration.connectionPool.retryConnectionEstablishment = false
    let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    await body { () async throws(KeyFetchError) in try await fetch(client) }
    // A failed shutdown leaves nothing to do: all requests have ended.
    try? await client.shutdown()
  }

  private func fetch(_ client: HTTPClient) async throws(KeyFetchError) -> [UInt8] {
    do {
      return try await download(client)
    } catch let error as KeyFetchError {
      throw error
    } catch {
      throw KeyFetchError(description: "the key set's URL was not reached: \(error)")
    }
  }

  /// Reads the whole answer. The client's own timeout ends with the response head, so this one covers the body too.
  private func download(_ client: HTTPClient) async throws -> [UInt8] {
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      group.addTask {
        var request = HTTPClientRequest(url: url)
        request.headers.add(name: "accept", value: "application/jwk-set+json, application/json")
        let response = try await client.execute(request, timeout: TimeAmount(timeout))
        guard response.status == .ok else {
          throw KeyFetchError(description: "the key set's URL answered \(response.status.code)")
        }
        return Array(try await response.body.collect(upTo: VerificationKeys.maximumSize).readableBytesView)
      }
      group.addTask {
        try await Task.sleep(for: timeout)
        throw KeyFetchError(description: "the key set's URL did not answer in time")
      }
      defer { group.cancelAll() }
      guard let body = try await group.next() else { throw HTTPClientError.cancelled }
      return body
    }
  }
}

/// A key set in a file.
struct KeyFile: Sendable {
  let path: String

  func read() throws(KeyFetchError) -> [UInt8] {
    do { return Array(try Data(contentsOf: URL(filePath: path))) } catch {
      throw KeyFetchError(description: "the file \(path) cannot be read")
    }
  }
}
