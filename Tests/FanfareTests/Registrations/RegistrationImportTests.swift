import FanfareCore
import Foundation
import Registry
import Support
import Synchronization
import Testing

@testable import fanfare

@Suite struct RegistrationImportTests {
  /// A store that cannot be used at first.
  private final class FailingStore: RegistrationImportStore {
    let importShape = (batches: 1, bytes: 100)
    let failures: Mutex<[RegistryError]>
    let taken = Mutex<[Int]>([])

    init(_ failures: [RegistryError]) { self.failures = Mutex(failures) }

    func take(_ batch: ImportBatch, at now: UnixTime) async throws -> ImportOutcome {
      if let failure = failures.withLock({ $0.popLast() }) { throw failure }
      taken.withLock { $0.append(batch.lines.count) }
      return ImportOutcome(counts: batch.counts)
    }

    func finishedBatches(of file: ImportID, hub: HubName) async throws -> [FinishedImportBatch] { [] }
    func forget(_ file: ImportID, hub: HubName) async throws {}
  }

  private static let outage = RegistryError(.unavailable, "the registry cannot be used now")

  /// Imports two lines in two batches; tells what was waited.
  private func run(_ store: FailingStore) async throws -> (announced: Int, pauses: [Duration]) {
    let pipe = Pipe()
    for number in 0..<2 {
      pipe.fileHandleForWriting.write(
        Data(#"{"user":"u\#(number)","platform":"fcm","handle":"handle-\#(number)"}"#.utf8 + [UInt8(ascii: "\n")]))
    }
    try pipe.fileHandleForWriting.close()
    let announced = Atomic(0)
    let pauses = Mutex<[Duration]>([])
    let work = RegistrationImport(
      store: store, hub: .default, maximumErrors: 0, clock: SystemWallClock(), complain: { _, _ in }, report: { _, _ in },
      waits: { _ in announced.add(1, ordering: .relaxed) }, sleep: { pause in pauses.withLock { $0.append(pause) } })
    var batches = LineBatches(pipe.fileHandleForReading, batchBytes: 60)
    _ = try await work.run(&batches, of: nil)
    return (announced.load(ordering: .relaxed), pauses.withLock { $0 })
  }

  @Test func `a batch waits for a registry that cannot be used`() async throws {
    let store = FailingStore(Array(repeating: Self.outage, count: 6))
    let (announced, pauses) = try await run(store)
    #expect(store.taken.withLock { $0 } == [1, 1])
    #expect(pauses == [1, 2, 4, 8, 10, 10].map { .seconds($0) } && announced == 1)
  }

  @Test func `but not for ever, and for no other error`() async throws {
    let store = FailingStore(Array(repeating: Self.outage, count: 100))
    await #expect(throws: RegistryError.self) { try await run(store) }
    #expect(store.failures.withLock { $0.count } > 80 && store.taken.withLock { $0.isEmpty })
    let other = FailingStore([RegistryError(.forbidden, "no")])
    await #expect(throws: RegistryError(.forbidden, "no")) { try await run(other) }
  }
}
