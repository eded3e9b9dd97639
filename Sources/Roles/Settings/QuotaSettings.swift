import FanfareCore
import SettingsTable

/// The keys of a hub's quotas.
struct QuotaKeys: Sendable {
  private static let standard = QuotaLimits()
  static let most = 1_000_000_000_000

  @Setting(standard, \.sendsPerSecond, in: 0...1_000_000, "each line of a batch counts as a send") var sendsPerSecond
  @Setting(
    in: 0...100_000_000, example: standard.sendBurst,
    "sends at once after a pause; by default as many as "
      + "shown, or the number of a sendsPerSecond that is not the default; 0: the same as sendsPerSecond")
  var burst: Int?
  @Setting(standard, \.devicesPerDay, in: 0...most, "devices that broadcasts address, by an estimate")
  var devicesPerDay
  @Setting(
    standard, \.openBroadcasts, in: 0...10_000,
    "broadcasts to many devices, scheduled ones included, that have not ended")
  var openBroadcasts
  @Setting(standard, \.registrationsPerDay, in: 0...most, "registrations made or renewed") var registrationsPerDay
  @Setting(
    standard, \.storedBytesPerDay, in: 0...most, "secure payloads, scheduled sends and idempotency claims")
  var storedBytesPerDay
  @Setting(standard, \.scheduledSends, in: 0...most, "scheduled sends that wait") var scheduledSends
  @Setting(
    standard, \.scheduledBytes, in: 0...most, "the bytes of scheduled sends that wait or were cancelled")
  var scheduledBytes
  @Setting(
    standard, \.failedLoginsPerDay, in: 0...most,
    "failed logins under a user's name, where the user did not log in lately")
  var failedLoginsPerDay
  @Setting(
    standard, \.readsPerSecond, in: 0...1_000_000,
    "requests that read registrations, sends, dead letters; ten times as many at once")
  var readsPerSecond
  @Setting("users with other quotas: [\"user backend: sends=0 scheduledSends=1000000\"]")
  var exceptions: [String] = []

  static let keys = SettingsSection(
    "hub.NAME.quota", QuotaKeys(), "The quotas of each caller, shared by all apis. 0: no limit.")
}

extension QuotaPolicy {
  /// Reads the quotas of a hub's callers.
  init(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let standard = QuotaLimits()
    var limits = standard
    let keys = try reader.read(QuotaKeys.keys, of: hub.rawValue, into: &limits)
    limits.sendBurst = keys.burst ?? (limits.sendsPerSecond == standard.sendsPerSecond ? standard.sendBurst : 0)
    var exceptions: [String: QuotaLimits] = [:]
    for text in keys.exceptions {
      guard let (user, own) = Self.exception(text, from: limits, upTo: QuotaKeys.most) else {
        throw SettingsError(
          "hub.\(hub).quota.exceptions",
          "must be a list of \"user NAME: QUOTA=NUMBER …\" with the quotas "
            + QuotaLimits.fields.keys.sorted().joined(separator: ", "))
      }
      exceptions[user] = own
    }
    self.init(everyone: limits, exceptions: exceptions)
  }

  /// Reads an exception; nil if it is malformed. A name may contain spaces and colons.
  private static func exception(
    _ text: String, from everyone: QuotaLimits, upTo most: Int
  ) -> (user: String, limits: QuotaLimits)? {
    guard text.hasPrefix("user "), let colon = text.lastIndex(of: ":") else { return nil }
    let user = String(text[text.index(text.startIndex, offsetBy: 5)..<colon])
    let words = text[text.index(after: colon)...].split(separator: " ")
    guard UserName.isValid(user), !words.isEmpty else { return nil }
    var limits = everyone
    for word in words {
      let pair = word.split(separator: "=", omittingEmptySubsequences: false)
      guard pair.count == 2, let path = QuotaLimits.fields[String(pair[0])], let number = Int(pair[1]),
        (0...most).contains(number)
      else { return nil }
      limits[keyPath: path] = number
    }
    if limits.sendBurst > 0 { limits.sendBurst = max(limits.sendBurst, limits.sendsPerSecond) }
    return (user, limits)
  }
}
