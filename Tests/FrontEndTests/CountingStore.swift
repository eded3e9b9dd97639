import FanfareCore
import Synchronization

/// A store that only counts what it holds.
final class CountingStore: SecurePayloadStore {
  private let counts = Mutex((stored: 0, discarded: 0))

  /// How many payloads were ever stored.
  var stored: Int { counts.withLock { $0.stored } }
  /// How many are still there.
  var kept: Int { counts.withLock { $0.stored - $0.discarded } }

  func store(_ payload: String, id: SecurePayloadID, hub: HubName, recipient: String, expiresAt: UnixTime) async throws
  {
    counts.withLock { $0.stored += 1 }
  }

  func read(
    _ id: SecurePayloadID, hub: HubName, recipient: String, isDelivered: Bool, at now: UnixTime
  ) async throws -> SecurePayload? { nil }

  func discard(_ id: SecurePayloadID, hub: HubName) async throws {
    counts.withLock { $0.discarded += 1 }
  }
}
