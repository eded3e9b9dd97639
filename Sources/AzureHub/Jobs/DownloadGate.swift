import FanfareCore
import FrontEnd
import NIOPosix
import Synchronization

/// Limits how many files are downloaded at a time: their URLs need no credentials, and a client may read slowly.
final class DownloadGate: Sendable {
  /// The most downloads of one hub.
  static let maximumPerHub = 4
  /// The most downloads of all hubs.
  private static let maximum = 32

  /// The place of a download, until it is released.
  final class Place: Sendable {
    private let gate: DownloadGate
    private let hub: HubName

    fileprivate init(_ gate: DownloadGate, _ hub: HubName) { (self.gate, self.hub) = (gate, hub) }

    deinit { gate.leave(hub) }
  }

  private let downloads = Mutex<[HubName: Int]>([:])

  /// Returns a place for a download. Throws `.overloaded` if all are taken.
  func enter(_ hub: HubName) throws(Refusal) -> Place {
    let isAdmitted = downloads.withLock { downloads in
      guard downloads[hub, default: 0] < Self.maximumPerHub, downloads.values.reduce(0, +) < Self.maximum else {
        return false
      }
      downloads[hub, default: 0] += 1
      return true
    }
    guard isAdmitted else {
      throw Refusal(.overloaded, "Too many files of the hub are being downloaded; try again when one has ended.")
    }
    return Place(self, hub)
  }

  private func leave(_ hub: HubName) {
    downloads.withLock { downloads in
      let rest = downloads[hub, default: 0] - 1
      downloads[hub] = rest > 0 ? rest : nil
    }
  }
}

/// Runs work that blocks, such as reading a file, on a thread for it.
func offLoop<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
  try await NIOThreadPool.singleton.runIfActive(work)
}
