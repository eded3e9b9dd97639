import ArgumentParser
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOPosix
import RDKafka
import Registry
import Support
import Testing

@testable import Roles
@testable import fanfare

/// Real failures, in the words that commands print.
@Suite(.timeLimit(.minutes(2))) struct ErrorWordsTests {
  private func words(of environment: [String: String], _ body: (Settings) async throws -> Void) async throws -> String {
    let settings = try Settings.load(file: nil, environment: environment)
    let error = await #expect(throws: (any Error).self) { try await body(settings) }
    return ErrorWords(settings).text(try #require(error))
  }

  @Test func closedKafkaPortIsNamedWithItsKey() async throws {
    let text = try await words(of: ["FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"]) { settings in
      let check = try TopicCheck(
        kafka: settings.kafka, client: try settings.kafka.client("test"), logger: TestKafka.quietLogger)
      _ = try await check.report(timeout: .milliseconds(500))
    }
    #expect(text == "127.0.0.1:1 (kafka.bootstrapServers) did not answer within 0.5 s")
  }

  @Test(arguments: [
    ("127.0.0.1:1", "127.0.0.1:1 (registry.postgres.url): the database is unavailable: the connection was refused"),
    (
      "nosuchhost.invalid",
      "nosuchhost.invalid:5432 (registry.postgres.url): the database is unavailable: the host name cannot be resolved"
    ),
  ])
  func unreachableDatabaseIsNamedWithoutItsPassword(host: String, message: String) async throws {
    let text = try await words(of: [
      "FANFARE_REGISTRY_POSTGRES_URL": "postgresql://u:marked-secret@\(host)/x?sslmode=disable",
      "FANFARE_REGISTRY_POSTGRES_WAIT_SECONDS": "1",
    ]) { settings in
      _ = try await settings.registry.open(role: "test", logger: TestKafka.quietLogger)
    }
    #expect(text == message)
  }

  @Test func filesAreNamedWithTheKernelsWords() throws {
    let error = #expect(throws: (any Error).self) {
      try FileHandle(forReadingFrom: URL(fileURLWithPath: "/nonexistent/file"))
    }
    #expect(ErrorWords.text(try #require(error)) == "/nonexistent/file: No such file or directory")
  }

  @Test func refusedConnectionIsNamedWithItsAddress() async throws {
    let error = await #expect(throws: (any Error).self) {
      try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(host: "127.0.0.1", port: 1).get()
    }
    #expect(ErrorWords.text(try #require(error)) == "127.0.0.1:1: Connection refused")
  }

  /// No name of an error of librdkafka is left, whatever its number.
  @Test(arguments: [
    "fanfare.sends: Broker: Unknown topic or partition (UNKNOWN_TOPIC_OR_PART)",
    "offsets: Local: Broker transport failure (_TRANSPORT)",
  ])
  func namesOfLibrdkafkaAreLeftOut(message: String) {
    let text = ErrorWords(nil).text(RDKafkaError(code: .broker, message: message, number: 3))
    #expect(!text.contains("_") && !text.contains("Broker:") && !text.contains("Local:"), "\(text)")
  }

  @Test func unexpectedJSONIsNamedByItsMember() throws {
    let error = #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(AcceptedAnswer.self, from: Data("{\"id\":7,\"state\":\"x\"}".utf8))
    }
    #expect(
      ErrorWords.text(try #require(error)) == "its member id is missing or has another type than expected")
  }
}
