import NIOCore
import NIOPosix
import Testing

@testable import HTTP2

/// Which ends of a connection delay the next one.
@Suite(.timeLimit(.minutes(1))) struct ConnectionEndTests {
  /// Gives out its requests once, and records the end.
  private final class Owner: ClientConnectionOwner {
    let ends = Probe<(wasOpened: Bool, isFailure: Bool)>()
    private let batches: [RequestBatch]

    init(_ requests: [HTTP2Request]) {
      batches =
        requests.isEmpty ? [] : [RequestBatch(requests[...], submission: Submission { _ in }, submittedAt: .now())]
    }

    func take(_ id: Int, openStreams: Int, streamLimit: Int, mayTake: Bool, now: NIODeadline) -> (
      batches: [RequestBatch], more: Bool
    ) {
      (openStreams == 0 && mayTake ? batches : [], false)
    }

    func ended(_ id: Int, wasOpened: Bool, isFailure: Bool, error: HTTP2ConnectionError?) {
      ends.add((wasOpened, isFailure))
    }

    func opened(_ id: Int, streamLimit: Int) {}
    func answered(_ id: Int) {}
    func requeue(_ id: Int, first: [RequestBatch], last: [RequestBatch]) {}
    func draining(_ id: Int, isFailure: Bool) {}
    func observe(_ event: HTTP2PoolEvent) {}
  }

  /// Connects to the server and returns the end; a connection that has been open for `longest` counts as old.
  private func end(
    of server: RawServer, longest: Duration, requests: [HTTP2Request] = []
  ) async throws -> (wasOpened: Bool, isFailure: Bool) {
    var configuration = HTTP2PoolConfiguration(host: "127.0.0.1", port: server.port, tls: nil)
    configuration.maximumReconnectBackoff = longest
    let owner = Owner(requests)
    ConnectionHandle(id: 1, eventLoop: PoolFixture.group.next()).connect(
      settings: try ClientConnectionSettings(configuration), owner: owner)
    let ends = try await owner.ends.wait(count: 1)
    try await server.close()
    return ends[0]
  }

  @Test func oldUnusedConnectionHasNotFailed() async throws {
    let end = try await end(of: RawServer([.settings, .nonsense]), longest: .zero)
    #expect(end == (true, false))
  }

  @Test func briefConnectionHasFailed() async throws {
    let end = try await end(of: RawServer([.settings, .nonsense]), longest: .seconds(100))
    #expect(end == (true, true))
  }

  @Test func connectionThatNeverOpensHasFailed() async throws {
    let end = try await end(of: RawServer([.nonsense]), longest: .zero)
    #expect(end == (false, true))
  }

  @Test func oldConnectionThatOwesAnAnswerHasFailed() async throws {
    let request = PoolFixture.request(1, body: Array(repeating: 0, count: 20_000))
    let end = try await end(of: RawServer([.settings], limit: 10_000), longest: .zero, requests: [request])
    #expect(end == (true, true))
  }
}
