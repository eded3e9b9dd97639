import FanfareCore
import GRDB
import Support
import Testing

@testable import Registry

/// Reads of a SQLite registry that take long, and those beside them.
@Suite(.timeLimit(.minutes(1))) struct ReadTests {
  private static let ann = ReadCaller(hub: .default, user: "ann")
  private static let bob = ReadCaller(hub: .default, user: "bob")
  /// A statement that never ends.
  private static let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"

  /// Begins a read that never ends, unless it is cancelled.
  private func endlessRead(of registry: RegistryDatabase, for caller: ReadCaller?) async -> Task<Int?, any Error> {
    let (begins, begin) = AsyncStream.makeStream(of: Void.self)
    let read = Task {
      try await ReadCaller.$current.withValue(caller) {
        try await registry.readFile { db in
          begin.finish()
          return try Int.fetchOne(db, sql: Self.endless)
        }
      }
    }
    for await _ in begins {}
    return read
  }

  @Test func cancelledReadInterruptsItsStatement() async throws {
    let temporary = try TemporaryRegistry { $0.readerCount = 1 }
    let read = await endlessRead(of: temporary.registry, for: nil)
    read.cancel()
    await #expect(throws: RegistryError.self) { try await read.value }
    #expect(try await temporary.registry.hubs().isEmpty)
  }

  @Test func callersReadsDoNotHoldUpOthers() async throws {
    let temporary = try TemporaryRegistry { ($0.readerCount, $0.busyTimeout) = (2, .seconds(600)) }
    let read = await endlessRead(of: temporary.registry, for: Self.ann)
    let waiting = Task {
      try await ReadCaller.$current.withValue(Self.ann) { try await temporary.registry.hubs() }
    }
    for caller in [Self.bob, nil] {
      _ = try await ReadCaller.$current.withValue(caller) { try await temporary.registry.hubs() }
    }
    try await temporary.registry.check()
    read.cancel()
    // It was behind the other one, which has its turn when that ends.
    #expect(try await waiting.value.isEmpty)
    await #expect(throws: RegistryError.self) { try await read.value }
  }

  @Test func checkFailsWhileNoReadComesBack() async throws {
    let temporary = try TemporaryRegistry { ($0.readerCount, $0.busyTimeout) = (1, .milliseconds(1)) }
    let read = await endlessRead(of: temporary.registry, for: nil)
    let error = await #expect(throws: RegistryError.self) { try await temporary.registry.check() }
    #expect(error?.code == .unavailable)
    #expect(error?.message.contains("too many reads of the registry") == true)
    await #expect(throws: TooManyReads.self) {
      try await ReadCaller.$current.withValue(Self.bob) { try await temporary.registry.hubs() }
    }
    read.cancel()
    await #expect(throws: RegistryError.self) { try await read.value }
  }
}
