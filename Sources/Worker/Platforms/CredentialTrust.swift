import DequeModule
import FanfareCore

/// Decides whether a refusal of one sender's credential concerns the credential or only the device it was answered for.
///
/// *Untried*: no push has proved the credential; a refusal concerns it. *Trusted*: pushes prove it; a refusal concerns
/// its device. *Doubted*: devices are refused and no push has proved the credential since the first of them; when
/// enough devices have been refused in a row, or one for long enough, refusals concern the credential. The next proof
/// makes it trusted again.
///
/// A device that is refused again although the credential was proved since is remembered: its refusals cast no doubt.
/// So a device, or a few, cannot stop the others however often pushes are sent to them.
///
/// Invariants: `refused` holds no device twice and fewer than `limit`; `oddities` and `order` hold the same devices.
struct CredentialTrust: Sendable {
  /// How long refusals may continue without a proof before they concern the credential, in milliseconds.
  static let longestDoubt: Int64 = 60_000
  /// How many devices are remembered as refused alone.
  static let capacity = 1_000

  /// How many devices in a row must be refused.
  private let limit: Int
  private var isTried = false
  /// The devices refused since the last proof.
  private var refused: [RegistrationID] = []
  /// Uptime of the first of these refusals.
  private var doubtedSince: Int64 = 0
  private var oddities: Set<RegistrationID> = []
  private var order: Deque<RegistrationID> = []
  /// How often the credential was proved. A push that is refused again after further proofs is itself at fault.
  private(set) var proofs = 0

  /// `limit`: at least 1.
  init(limit: Int) {
    self.limit = limit
  }

  /// Notes a push that proves the credential.
  mutating func prove() {
    isTried = true
    proofs &+= 1
    if !refused.isEmpty { refused.removeAll(keepingCapacity: true) }
  }

  /// Notes a refusal. Returns whether it concerns the credential.
  mutating func refuse(_ device: RegistrationID, at uptime: Int64) -> Bool {
    guard isTried else { return true }
    guard !oddities.contains(device) else { return false }
    if refused.isEmpty { doubtedSince = uptime }
    if !refused.contains(device) { refused.append(device) }
    guard refused.count >= limit || uptime - doubtedSince >= Self.longestDoubt else { return false }
    refused.removeAll()
    return true
  }

  /// Whether the device was refused while the credential worked for others.
  func isOdd(_ device: RegistrationID) -> Bool { oddities.contains(device) }

  /// Remembers a device that is refused while the credential works for others. Returns whether it is new.
  mutating func remember(_ device: RegistrationID) -> Bool {
    guard oddities.insert(device).inserted else { return false }
    order.append(device)
    if order.count > Self.capacity { oddities.remove(order.removeFirst()) }
    return true
  }

  /// Forgets a device, because a push to it was accepted.
  mutating func acquit(_ device: RegistrationID) {
    guard !oddities.isEmpty, oddities.remove(device) != nil else { return }
    order.removeAll { $0 == device }
  }

  func checkInvariants() -> [String] {
    var violations: [String] = []
    if Set(refused).count != refused.count || refused.count >= max(2, limit) {
      violations.append("\(refused.count) devices refused in a row")
    }
    if order.count != oddities.count { violations.append("\(order.count) odd devices, \(oddities.count) known") }
    return violations
  }
}
