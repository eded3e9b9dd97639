import FanfareCore
import Foundation
import HTTPServer
import Logging
import Operations
import Support
import Synchronization
import Testing

@testable import FrontEnd

/// Threads that hash passwords, and what a flood of logins costs everybody else.
@Suite(.timeLimit(.minutes(2))) struct HashingTests {
  /// A file with one user, whose bcrypt hash of cost 4 takes a millisecond.
  private static let quick = "ann:$2y$04$MI0972Rll9Ecwmd0N6d2SuQ8EExHQJwNVTeZ1xwW4/vOhWVqHluoS\n"

  @Test func passwordsAreHashedOnFewerThreadsThanCoresAndOfLowPriority() async throws {
    let hashing = HashingThreads()
    let running = Shared(0)
    let most = Shared(0)
    try await withThrowingTaskGroup(of: Int32.self) { group in
      for _ in 0..<100 {
        group.addTask {
          try await hashing.run {
            let count = running.withLock { count in
              count += 1
              return count
            }
            most.withLock { $0 = max($0, count) }
            defer { running.withLock { $0 -= 1 } }
            return BackgroundThread.currentNiceness
          }
        }
      }
      for try await niceness in group { #expect(niceness >= BackgroundThread.niceness) }
    }
    #expect((1...max(1, ProcessInfo.processInfo.activeProcessorCount - 1)).contains(most.withLock { $0 }))
  }

  /// Runs the body while one of the threads waits for the gate, which the body opens.
  private static func occupying<Result>(
    _ hashing: HashingThreads, _ body: (DispatchSemaphore) async throws -> Result
  ) async throws -> Result {
    let gate = DispatchSemaphore(value: 0)
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    async let occupation: Void = hashing.run {
      begin.finish()
      gate.wait()
    }
    for await _ in begun {}
    do {
      let result = try await body(gate)
      try await occupation
      return result
    } catch {
      gate.signal()
      throw error
    }
  }

  @Test func knownUsersAreHashedBeforeStrangersWhoCannotFillTheirQueue() async throws {
    let hashing = HashingThreads(threads: 1, maximumWaiting: 2)
    let order = Shared<[String]>([])
    try await Self.occupying(hashing) { gate in
      try await withThrowingTaskGroup(of: Void.self) { group in
        let (queued, queue) = AsyncStream.makeStream(of: Void.self)
        func add(_ name: String, _ login: HashingThreads.Login) {
          group.addTask {
            do throws(AuthenticationError) {
              try await hashing.run(for: login) { order.withLock { $0.append(name) } }
            } catch {
              order.withLock { $0.append("\(name) refused") }
              queue.yield()
            }
          }
        }
        // Of three strangers one finds no place; the users have places of their own.
        for _ in 1...3 { add("stranger", .stranger) }
        for await _ in queued { break }
        for number in 1...3 { add("known", .known(number)) }
        for await _ in queued { break }
        gate.signal()
        try await group.waitForAll()
      }
    }
    #expect(order.withLock { $0 } == ["stranger refused", "known refused", "known", "known", "stranger", "stranger"])
  }

  /// An account whose owner guesses many passwords at once must not delay the others.
  @Test func oneKnownUserHasFewPlacesBeforeStrangers() async throws {
    let most = HashingThreads.maximumWaitingOfOne
    let hashing = HashingThreads(threads: 1, maximumWaiting: most + 1)
    let order = Shared<[String]>([])
    try await Self.occupying(hashing) { gate in
      try await withThrowingTaskGroup(of: Void.self) { group in
        let (refused, refuse) = AsyncStream.makeStream(of: Void.self)
        func add(_ name: String, _ user: Int) {
          group.addTask {
            do throws(AuthenticationError) {
              try await hashing.run(for: .known(user)) { order.withLock { $0.append(name) } }
            } catch {
              order.withLock { $0.append("\(name) refused") }
              refuse.yield()
            }
          }
        }
        // Ann fills her places and those of strangers; Ben finds the last place before strangers.
        for _ in 1...2 * most + 2 { add("ann", 1) }
        for await _ in refused { break }
        for _ in 1...2 { add("ben", 2) }
        for await _ in refused { break }
        gate.signal()
        try await group.waitForAll()
      }
    }
    var expected = ["ann refused", "ben refused"]
    for place in 0...2 * most + 1 { expected.append(place == most ? "ben" : "ann") }
    let found = order.withLock { $0 }
    #expect(found == expected)
  }

  /// An attacker who knows a name must not occupy the queue of the user at its own address.
  @Test func knownNameIsQueuedAsAStrangerAtOtherAddresses() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "fanfare-htpasswd-\(UUID().uuidString)").path
    try Data(Self.quick.utf8).write(to: URL(filePath: path))
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: path) } }
    let hashing = HashingThreads(threads: 1, maximumWaiting: 1)
    let authenticator = try HtpasswdAuthenticator(path: path, hashing: hashing, logger: TestKafka.quietLogger)
    @Sendable func login(_ password: String, isKnown: Bool) async throws -> String {
      let credentials = Credentials.basic(try #require(BasicCredentials(user: "ann", password: password)))
      let origin = LoginOrigin(address: .unknown, isKnown: isKnown)
      do {
        let principal = try await authenticator.authenticate(credentials, hub: .default, from: origin)
        return principal == nil ? "wrong" : "right"
      } catch AuthenticationError.overloaded {
        return isKnown ? "known refused" : "stranger refused"
      }
    }
    #expect(try await login("correct horse: battery", isKnown: false) == "right")
    let results = try await Self.occupying(hashing) { gate in
      // Of each two one finds a place; all other results come after the gate is opened.
      return try await withThrowingTaskGroup(of: String.self) { group in
        for isKnown in [false, true] {
          for number in 1...2 { group.addTask { try await login("wrong \(number) \(isKnown)", isKnown: isKnown) } }
        }
        var results: [String] = []
        while let result = try await group.next() {
          results.append(result)
          if results.count == 2 { gate.signal() }
        }
        return results
      }
    }
    #expect(results.sorted() == ["known refused", "stranger refused", "wrong", "wrong"])
  }

  /// Six connections of unknown users whose passwords wait for a thread that is occupied: one finds no place.
  /// No more than six, since the client opens eight connections and health needs one.
  @Test func healthIsAnsweredWhileStrangersAreHashed() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "fanfare-htpasswd-\(UUID().uuidString)").path
    try Data(Self.quick.utf8).write(to: URL(filePath: path))
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: path) } }
    let hashing = HashingThreads(threads: 1, maximumWaiting: 5)
    let authenticator = try HtpasswdAuthenticator(path: path, hashing: hashing, logger: TestKafka.quietLogger)
    try await Self.occupying(hashing) { gate in
      try await Harness.run({
        $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])]
        $0.operations = OperationsRoutes(metrics: PrometheusMetrics(), health: HealthRegistry(readiness: []))
      }) { app in
        try await withThrowingTaskGroup(of: Int.self) { group in
          for number in 0..<6 {
            group.addTask { try await app.request(.get, "/api/sends", as: "stranger-\(number)").status }
          }
          // All places are taken once one is refused.
          #expect(try await group.next() == 503)
          for _ in 0..<10 { #expect(try await app.request(.get, "/healthz", as: nil).status == 200) }
          gate.signal()
          for try await status in group { #expect(status == 401) }
        }
      }
    }
  }

  /// A value that several tasks change.
  private final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    func withLock<Result: Sendable>(_ body: (inout sending Value) -> sending Result) -> Result { state.withLock(body) }
  }
}
