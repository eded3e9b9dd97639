import FanfareCore
import Foundation
import Logging
import NIOHTTP1
import Support
import Testing

@testable import PushServices

@Suite struct ClientCredentialsTests {
  private func credentials(
    _ server: HTTP1Server, _ certificates: TestCertificates, scope: String? = nil
  ) throws -> ClientCredentials {
    try ClientCredentials(
      endpoint: "https://localhost:\(server.port)/token", clientID: "kafka client", scope: scope,
      trustRoots: certificates.authorityPEM, logger: Logger(label: "test"))
  }

  @Test func tokenIsGrantedForASecret() async throws {
    let certificates = try TestCertificates()
    let server = try await HTTP1Server(certificates) { _ in
      HTTP1Server.Response(status: .ok, body: #"{"access_token": "t0ken", "expires_in": 300}"#)
    }
    let (token, lifetime) = try await credentials(server, certificates, scope: "a b").token(secret: "s:cret")
    #expect(token == "t0ken" && lifetime == .seconds(300))
    let request = try #require(server.requests.first)
    #expect(request.body == "grant_type=client_credentials&scope=a%20b")
    // RFC 6749 §2.3.1: both are form-encoded before they are joined.
    let expected = Data("kafka%20client:s%3Acret".utf8).base64EncodedString()
    #expect(request.head.headers["authorization"] == ["Basic \(expected)"])
    try await server.close()
  }

  @Test func refusalIsNamedWithoutTheSecret() async throws {
    let certificates = try TestCertificates()
    let server = try await HTTP1Server(certificates) { _ in
      HTTP1Server.Response(status: .unauthorized, body: #"{"error": "invalid_client"}"#)
    }
    let client = try credentials(server, certificates)
    let error = await #expect(throws: ClientCredentials.Refusal.self) { try await client.token(secret: "s3cret") }
    #expect(error?.description == "the token endpoint answers: refused: invalid_client (401)")
    try await server.close()
  }

  @Test func serverOfAnotherAuthorityGetsNoSecret() async throws {
    let certificates = try TestCertificates()
    let server = try await HTTP1Server(certificates) { _ in HTTP1Server.Response(status: .ok) }
    let client = try credentials(server, try TestCertificates())
    await #expect(throws: ClientCredentials.Refusal.self) { try await client.token(secret: "s3cret") }
    #expect(server.requests.isEmpty)
    try await server.close()
  }

  @Test func endpointWithoutTLSIsRefused() {
    let error = #expect(throws: PushConfigurationError.self) {
      try ClientCredentials(
        endpoint: "http://localhost/token", clientID: "c", scope: nil, trustRoots: nil, logger: Logger(label: "test"))
    }
    #expect(error?.field == "tokenEndpoint")
  }
}
