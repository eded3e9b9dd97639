import NIOCore
import Testing

@testable import HTTP2

/// The pool's decisions, without connections or time.
struct PoolStateTests {
  private var state: PoolState<Int>
  private var now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
  private let submission = Submission { _ in }

  init() { state = Self.make { _ in } }

  private static func make(_ configure: (inout HTTP2PoolConfiguration) -> Void) -> PoolState<Int> {
    var configuration = HTTP2PoolConfiguration(host: "h", port: 1, tls: nil)
    configure(&configuration)
    return PoolState(configuration: configuration) { $0 }
  }

  private func batch(
    _ count: Int, timeout: Duration = .seconds(10), generation: Int = 0, isBulk: Bool = false, first: Int = 0
  ) -> RequestBatch {
    let requests = (first..<first + count).map {
      HTTP2Request(
        ticket: UInt64($0), shared: HTTP2Headers(), headers: HTTP2Headers(path: "/"), timeout: timeout, isBulk: isBulk)
    }
    let submission = generation == 0 ? submission : Submission(generation: generation) { _ in }
    return RequestBatch(requests[...], submission: submission, submittedAt: now)
  }

  /// An action in words.
  private func words(_ actions: [PoolState<Int>.Action]) -> [String] {
    actions.map { action in
      switch action {
      case .connect(let id): "connect \(id)"
      case .wake(let id): "wake \(id)"
      case .drain(let id): "drain \(id)"
      case .abort(let id): "abort \(id)"
      case .fail(let batches, let error): "fail \(batches.reduce(0) { $0 + $1.requests.count }) \(error.code)"
      case .finish: "finish"
      }
    }
  }

  /// Lets connection `id` become ready and find nothing to do.
  private mutating func open(_ id: Int, limit: Int = 10) {
    #expect(words(state.opened(id: id, streamLimit: limit, now: now)).isEmpty)
    _ = state.take(id: id, openStreams: 0, streamLimit: limit, mayTake: true, now: now)
  }

  @Test mutating func everyEighthRequestIsBulkWhileBothLanesWait() {
    _ = state.start(now: now)
    open(1, limit: 100)
    _ = state.submit(batch(1000, isBulk: true), now: now)
    _ = state.submit(batch(40, first: 2000), now: now)
    _ = state.submit(batch(40, timeout: .seconds(1), first: 3000), now: now)
    var taken: [Int] = []
    for _ in 0..<10 {
      let batches = state.take(id: 1, openStreams: 95, streamLimit: 100, mayTake: true, now: now).batches
      #expect(batches.allSatisfy { batch in batch.requests.allSatisfy { $0.isBulk == batch.isBulk } })
      taken += batches.flatMap { $0.requests.map { Int($0.ticket) } }
    }
    #expect(taken.filter { $0 < 1000 } == Array(0..<6) && taken[7] == 0 && taken[15] == 1)
    #expect(taken.filter { $0 >= 1000 } == Array(2000..<2040) + Array(3000..<3004))
    #expect(words(state.tick(now: now + .seconds(2))).contains("fail 36 deadlineExceeded"))
    let rest = state.take(id: 1, openStreams: 0, streamLimit: 100, mayTake: true, now: now).batches
    #expect(rest.flatMap { $0.requests.map { Int($0.ticket) } } == Array(6..<106))
  }

  @Test mutating func opensTheMinimumAndGrowsOnlyWhenFull() {
    state = Self.make { $0.maximumConnections = 2 }
    #expect(words(state.start(now: now)) == ["connect 1"])
    open(1)
    let (rejected, actions) = state.submit(batch(25), now: now)
    #expect(rejected == nil)
    #expect(words(actions) == ["wake 1"])
    let (batches, more) = state.take(id: 1, openStreams: 0, streamLimit: 10, mayTake: true, now: now)
    #expect(batches.flatMap { $0.requests.map(\.ticket) } == Array(0..<10))
    #expect(!more)
    #expect(words(state.tick(now: now + .milliseconds(200))).isEmpty)
    #expect(words(state.tick(now: now + .milliseconds(300))) == ["connect 2"])
    #expect(words(state.tick(now: now + .milliseconds(400))).isEmpty)
    _ = state.opened(id: 2, streamLimit: 10, now: now)
    _ = state.take(id: 2, openStreams: 0, streamLimit: 10, mayTake: true, now: now)
    // The maximum is reached.
    #expect(words(state.tick(now: now + .seconds(2))).isEmpty)
    #expect(state.statistics.queued == 5)
  }

  @Test mutating func connectionsTakeInPortionsAndShareTheRest() {
    _ = state.start(now: now)
    open(1, limit: 1000)
    _ = state.submit(batch(300), now: now)
    let (batches, more) = state.take(id: 1, openStreams: 0, streamLimit: 1000, mayTake: true, now: now)
    #expect(batches.map(\.requests.count) == [PoolState<Int>.takeLimit])
    #expect(more)
  }

  @Test mutating func onlyConnectionsWithWorkAreWoken() {
    state = Self.make {
      $0.minimumConnections = 3
      $0.maximumConnections = 3
    }
    #expect(words(state.start(now: now)) == ["connect 1", "connect 2", "connect 3"])
    for id in 1...3 { open(id, limit: 1000) }
    #expect(words(state.submit(batch(5), now: now).1) == ["wake 1"])
    #expect(words(state.submit(batch(200), now: now).1) == ["wake 2", "wake 3"])
    // All connections are awake already.
    #expect(words(state.submit(batch(5), now: now).1).isEmpty)
  }

  @Test mutating func connectionsThatFailTogetherAreOneFailure() {
    state = Self.make {
      $0.minimumConnections = 4; $0.maximumConnections = 4
    }
    #expect(words(state.start(now: now)) == (1...4).map { "connect \($0)" })
    for id in 1...4 { _ = state.opened(id: id, streamLimit: 10, now: now) }
    let error = HTTP2ConnectionError(.unresponsive, "")
    for id in 1...4 {
      let (pause, actions) = state.ended(id: id, isFailure: true, error: error, now: now)
      #expect(pause > .zero && pause <= .seconds(1))
      #expect(actions.isEmpty)
    }
  }

  @Test mutating func poolPausesAfterFailures() {
    #expect(words(state.start(now: now)) == ["connect 1"])
    let error = HTTP2ConnectionError(.connectFailed, "refused")
    var pauses: [TimeAmount] = []
    for id in 1...10 {
      let (pause, actions) = state.ended(id: id, isFailure: true, error: error, now: now)
      pauses.append(pause)
      #expect(words(actions).isEmpty)
      #expect(words(state.tick(now: now)).isEmpty)
      now = now + pause
      #expect(words(state.tick(now: now)) == ["connect \(id + 1)"])
    }
    #expect(pauses[0] >= .milliseconds(500) && pauses[0] <= .seconds(1))
    #expect(pauses[3] >= .seconds(4) && pauses[3] <= .seconds(8))
    #expect(pauses[9] >= .milliseconds(7500) && pauses[9] <= .seconds(15))
    // A working connection ends the series of failures.
    open(11)
    state.answered(id: 11)
    #expect(words(state.ended(id: 11, isFailure: false, error: nil, now: now).1) == ["connect 12"])
  }

  @Test mutating func waitingRequestsExpire() {
    _ = state.submit(batch(3, timeout: .seconds(1)), now: now)
    _ = state.submit(batch(2, timeout: .seconds(5)), now: now)
    #expect(words(state.tick(now: now + .milliseconds(999))).isEmpty)
    #expect(words(state.tick(now: now + .seconds(1))) == ["fail 3 deadlineExceeded"])
    #expect(words(state.tick(now: now + .seconds(5))) == ["fail 2 deadlineExceeded"])
    #expect(state.statistics.queued == 0)
  }

  @Test mutating func returnedRequestsKeepTheirOrder() {
    _ = state.start(now: now)
    open(1)
    _ = state.submit(batch(2), now: now)
    let actions = state.requeue(first: [batch(1), batch(3)], last: [batch(4)], now: now)
    #expect(words(actions).isEmpty)
    let (batches, _) = state.take(id: 1, openStreams: 0, streamLimit: 10, mayTake: true, now: now)
    #expect(batches.map(\.requests.count) == [1, 3, 2, 4])
  }

  @Test mutating func replacesAnAgedConnectionOnceTheNewOneIsReady() {
    state = Self.make { $0.maximumConnectionAge = .seconds(60) }
    _ = state.start(now: now)
    open(1)
    #expect(words(state.tick(now: now + .seconds(59))).isEmpty)
    #expect(words(state.tick(now: now + .seconds(60))) == ["connect 2"])
    #expect(words(state.tick(now: now + .seconds(61))).isEmpty)
    #expect(words(state.opened(id: 2, streamLimit: 10, now: now + .seconds(61))) == ["drain 1"])
  }

  @Test mutating func renewsEverything() {
    state = Self.make {
      $0.minimumConnections = 2
      $0.maximumConnections = 2
    }
    _ = state.start(now: now)
    open(1)
    #expect(words(state.renew(now: now)) == ["drain 1", "connect 3"])
    #expect(state.statistics.draining == 1)
  }

  @Test mutating func laterGenerationReplacesConnectionsAndWaitingRequests() {
    _ = state.start(now: now)
    open(1)
    _ = state.submit(batch(12), now: now)
    _ = state.take(id: 1, openStreams: 0, streamLimit: 10, mayTake: true, now: now)
    #expect(words(state.submit(batch(3, generation: 1), now: now).1) == ["fail 2 superseded", "drain 1", "connect 2"])
    // Requests of the earlier generation that arrive later, or are returned by the old connection, have no connection.
    #expect(words(state.submit(batch(4), now: now).1) == ["fail 4 superseded"])
    #expect(words(state.requeue(first: [batch(1)], last: [batch(5)], now: now)) == ["fail 6 superseded"])
    _ = state.opened(id: 2, streamLimit: 10, now: now)
    #expect(words(state.submit(batch(6, generation: 1), now: now).1).isEmpty)
    #expect(words(state.requeue(first: [batch(2, generation: 1)], last: [], now: now)).isEmpty)
    let (batches, _) = state.take(id: 2, openStreams: 0, streamLimit: 100, mayTake: true, now: now)
    #expect(batches.map(\.requests.count) == [2, 3, 6])
  }

  @Test mutating func connectionThatOpensAfterThePoolHasClosedEnds() {
    #expect(words(state.start(now: now)) == ["connect 1"])
    // Arrives before the connection is made on another thread.
    #expect(words(state.beginClosing()) == ["abort 1"])
    #expect(words(state.opened(id: 1, streamLimit: 10, now: now)) == ["drain 1"])
    #expect(words(state.ended(id: 1, isFailure: false, error: nil, now: now).1) == ["finish"])
  }

  @Test mutating func poolFinishesWithItsLastConnection() {
    _ = state.start(now: now)
    open(1)
    _ = state.submit(batch(20), now: now)
    _ = state.take(id: 1, openStreams: 0, streamLimit: 10, mayTake: true, now: now)
    #expect(words(state.beginClosing()) == ["fail 10 closed", "drain 1"])
    #expect(state.submit(batch(1), now: now).rejected?.requests.count == 1)
    #expect(words(state.requeue(first: [batch(2)], last: [], now: now)) == ["fail 2 closed"])
    #expect(words(state.ended(id: 1, isFailure: false, error: nil, now: now).1) == ["finish"])
    #expect(state.phase == .closed)
  }
}
