import Foundation
import Operations
import SettingsTable
import Support
import Testing

@testable import Roles

@Suite struct TracingSettingsTests {
  private static func load(_ environment: [String: String]) async throws -> Settings {
    try Settings.load(file: nil, environment: environment)
  }

  @Test func tracingIsOffWithoutAnEndpoint() async throws {
    #expect(try await Self.load([:]).tracing == nil)
  }

  @Test(arguments: [
    ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
    ("https://otel.example.com/", "https://otel.example.com/v1/traces"),
    ("https://otel.example.com/tenant/traces", "https://otel.example.com/tenant/traces"),
  ]) func pathOfTheProtocolIsAddedToABareAddress(endpoint: String, url: String) async throws {
    let settings = try await Self.load(["FANFARE_TRACING_ENDPOINT": endpoint])
    #expect(settings.tracing?.exporter(of: "api").endpoint == url)
    #expect(settings.tracing?.sampleRatio == 0.01)
  }

  @Test(arguments: ["collector:4318", "ftp://collector", "http://", "http://user@collector", "/v1/traces"])
  func unusableEndpointIsRefused(endpoint: String) async {
    await #expect(throws: SettingsError.self) { try await Self.load(["FANFARE_TRACING_ENDPOINT": endpoint]) }
  }

  @Test func secretHeadersComeFromAFileAndTravelProtected() async throws {
    let file = try SecretFixture("# of the collector\nApi-Key: MARK-1\nX-Tenant:  a b\n")
    defer { #expect(throws: Never.self) { try file.remove() } }
    let headers = ["FANFARE_TRACING_HEADERS_FILE": file.path]
    let local = try await Self.load(headers.merging(["FANFARE_TRACING_ENDPOINT": "http://127.0.0.1:4318"]) { $1 })
    #expect(local.tracing?.exporter(of: "api").headers.map { $0.name } == ["Api-Key", "X-Tenant"])
    #expect(local.tracing?.exporter(of: "api").headers.map { $0.value } == ["MARK-1", "a b"])
    for other in [["FANFARE_TRACING_ENDPOINT": "http://otel.example.com"], [:]] {
      let error = await #expect(throws: SettingsError.self) { try await Self.load(headers.merging(other) { $1 }) }
      #expect(error?.description.hasPrefix("tracing.endpoint ") == true)
    }
  }
}
