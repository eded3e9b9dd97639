import FanfareCore
import Foundation
import RDKafka
import Synchronization

@testable import Ledger

/// A directory for one test's files, removed with it.
final class TemporaryDirectory: Sendable {
  private let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "ledger-\(UUID())")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    // What stays behind in the temporary directory does no harm.
    try? FileManager.default.removeItem(at: url)
  }

  func path(_ name: String = "ledger.sqlite") -> String { url.appending(path: name).path }

  func settings(_ name: String = "ledger.sqlite") -> LedgerStoreConfiguration {
    var settings = LedgerStoreConfiguration(path: path(name))
    settings.maximumDevices = 4
    return settings
  }
}

/// A clock that a test sets.
final class SettableClock: WallClock {
  private let time: Mutex<UnixTime>

  init(_ time: UnixTime) {
    self.time = Mutex(time)
  }

  func now() -> UnixTime { time.withLock { $0 } }

  func set(_ time: UnixTime) { self.time.withLock { $0 = time } }
}

extension UnixTime {
  /// The moment from which the tests count.
  static let start = UnixTime(milliseconds: 1_790_000_000_000)
}
