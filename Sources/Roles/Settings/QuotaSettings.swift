import FanfareCore

/// The quotas of a hub's callers, shared by all front ends. All keys are under `hub.NAME.quota.`; 0 means no limit.
///
/// - `sendsPerSecond` (0…1000000, default 1000): the sends of one caller; each line of a batch counts as a send.
/// - `burst` (0…100000000, default 60000 if `sendsPerSecond` has its default, else 0): the most sends at once after a
///   pause; 0: the same as `sendsPerSecond`.
/// - `devicesPerDay` (default 100000000): the devices that a caller's broadcasts address, by an estimate.
/// - `openBroadcasts` (default 100): broadcasts to many devices, scheduled ones included, that have not ended.
/// - `registrationsPerDay` (default 10000): registrations made or renewed.
/// - `storedBytesPerDay` (default 4294967296): secure payloads, scheduled sends and idempotency claims.
/// - `scheduledSends` (default 100000): scheduled sends that wait.
/// - `scheduledBytes` (default 268435456): the bytes of scheduled sends that wait or were cancelled.
/// - `failedLoginsPerDay` (default 5000): failed logins under a user's name, at addresses where the user was not
///   authenticated lately.
/// - `readsPerSecond` (0…1000000, default 500): a caller's requests that read registrations, sends and dead letters;
///   ten times as many at once.
/// - `exceptions` (list of `user NAME: QUOTA=NUMBER …`): users with other quotas, by the names `sends`, `burst`,
///   `devices`, `openBroadcasts`, `registrations`, `storedBytes`, `scheduledSends`, `scheduledBytes`,
///   `failedLogins` and `reads`.
extension QuotaPolicy {
  init(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let section = "hub.\(hub).quota"
    let most = 1_000_000_000_000
    var limits = QuotaLimits()
    func read(
      _ key: String, _ path: WritableKeyPath<QuotaLimits, Int>, upTo maximum: Int
    ) throws(SettingsError) {
      limits[keyPath: path] = try reader.int("\(section).\(key)", default: limits[keyPath: path], in: 0...maximum)
    }
    let defaultRate = limits.sendsPerSecond
    try read("sendsPerSecond", \.sendsPerSecond, upTo: 1_000_000)
    // A rate that was chosen without a burst had no burst before there was a default.
    if limits.sendsPerSecond != defaultRate { limits.sendBurst = 0 }
    try read("burst", \.sendBurst, upTo: 100_000_000)
    try read("devicesPerDay", \.devicesPerDay, upTo: most)
    try read("openBroadcasts", \.openBroadcasts, upTo: 10_000)
    try read("registrationsPerDay", \.registrationsPerDay, upTo: most)
    try read("storedBytesPerDay", \.storedBytesPerDay, upTo: most)
    try read("scheduledSends", \.scheduledSends, upTo: most)
    try read("scheduledBytes", \.scheduledBytes, upTo: most)
    try read("failedLoginsPerDay", \.failedLoginsPerDay, upTo: most)
    try read("readsPerSecond", \.readsPerSecond, upTo: 1_000_000)
    var exceptions: [String: QuotaLimits] = [:]
    for text in try reader.strings("\(section).exceptions") {
      guard let (user, own) = Self.exception(text, from: limits, upTo: most) else {
        throw SettingsError(
          "\(section).exceptions",
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
