import FanfareCore

/// Decides whether a refusal of one sender's credential concerns the credential or only the device it was answered for.
///
/// A refusal concerns the device alone if another push has proved the credential within the last minute, and fewer than
/// `limit` devices have been refused since that proof. A credential that is revoked is therefore known after `limit` devices,
/// or after a minute.
///
/// Invariant: `refused` holds no device twice and fewer than `limit`.
struct CredentialTrust: Sendable {
  /// How long a proof counts, in milliseconds.
  static let memory: Int64 = 60_000

  private let limit: Int
  /// Uptime of the last push that proved the credential; nil: none since it was last refused.
  private var provedAt: Int64?
  /// The devices refused since then.
  private var refused: [RegistrationID] = []
  /// Uptime before which no further device is reported.
  private var reportDue = Int64.min

  /// `limit`: at least 1.
  init(limit: Int) {
    self.limit = limit
  }

  /// Whether a push has proved the credential within the last minute, and it was not refused since.
  func isProved(at uptime: Int64) -> Bool { provedAt.map { uptime - $0 < Self.memory } ?? false }

  /// Notes a push that proves the credential.
  mutating func prove(at uptime: Int64) {
    provedAt = uptime
    if !refused.isEmpty { refused.removeAll(keepingCapacity: true) }
  }

  /// Notes a refusal. Returns whether it concerns this device alone.
  mutating func refuse(_ device: RegistrationID, at uptime: Int64) -> Bool {
    if !refused.contains(device) { refused.append(device) }
    if refused.count < limit, isProved(at: uptime) { return true }
    distrust()
    return false
  }

  /// Notes that the credential is refused: refusals are no device's own before another push has proved it.
  mutating func distrust() {
    refused.removeAll(keepingCapacity: true)
    provedAt = nil
  }

  /// Whether to report a device that is refused alone: once a minute.
  mutating func isReportDue(at uptime: Int64) -> Bool {
    guard uptime >= reportDue else { return false }
    reportDue = uptime + Self.memory
    return true
  }

  func checkInvariants() -> [String] {
    Set(refused).count != refused.count || refused.count >= max(2, limit)
      ? ["\(refused.count) devices refused in a row"] : []
  }
}
