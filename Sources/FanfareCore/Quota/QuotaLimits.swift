/// The quotas of one user. 0: no limit.
package struct QuotaLimits: Hashable, Sendable {
  /// Sends per second in the long run. Each line of a batch counts as a send.
  package var sendsPerSecond = 1000
  /// Sends at once after a pause.
  package var sendBurst = 60_000
  /// Devices addressed by broadcasts, by an estimate of the audience.
  package var devicesPerDay = 100_000_000
  /// Registrations made or renewed.
  package var registrationsPerDay = 10_000
  /// Bytes of secure payloads, scheduled sends and idempotency claims.
  package var storedBytesPerDay = 4 << 30
  /// Broadcasts to many devices that have not ended.
  package var openBroadcasts = 100
  /// Scheduled sends that wait.
  package var scheduledSends = 100_000
  /// The bytes of scheduled sends that wait or were cancelled.
  package var scheduledBytes = 256 << 20
  /// Failed logins under the user's name, at addresses where the user is not known.
  package var failedLoginsPerDay = 5000
  /// Requests that read registrations, sends and dead letters, per second in the long run; ten times as many at once.
  package var readsPerSecond = 500

  /// The defaults: more than a normal backend ever uses, less than what stalls workers or fills a disk.
  package init() {}

  /// No limits.
  package static let none: Self = {
    var limits = Self()
    for path in fields.values { limits[keyPath: path] = 0 }
    return limits
  }()

  /// The fields by their names in the settings of exceptions.
  package static var fields: [String: WritableKeyPath<Self, Int>] {
    [
      "sends": \.sendsPerSecond, "burst": \.sendBurst, "devices": \.devicesPerDay,
      "registrations": \.registrationsPerDay, "storedBytes": \.storedBytesPerDay, "openBroadcasts": \.openBroadcasts,
      "scheduledSends": \.scheduledSends, "scheduledBytes": \.scheduledBytes,
      "failedLogins": \.failedLoginsPerDay, "reads": \.readsPerSecond,
    ]
  }

  /// The rate of a quota; nil for no limit, and for a quota that does not limit a rate.
  package func rate(_ name: QuotaName) -> RateLimit? {
    switch name {
    case .sends:
      sendsPerSecond == 0
        ? nil
        : RateLimit(perSecond: Double(sendsPerSecond), burst: sendBurst == 0 ? sendsPerSecond : sendBurst)
    // A hub may have more devices than a day's permits.
    case .devices: devicesPerDay == 0 ? nil : RateLimit(perDay: devicesPerDay, mayOverdraw: true)
    case .registrations: registrationsPerDay == 0 ? nil : RateLimit(perDay: registrationsPerDay)
    case .storedBytes: storedBytesPerDay == 0 ? nil : RateLimit(perDay: storedBytesPerDay, mayOverdraw: true)
    case .failedLogins: failedLoginsPerDay == 0 ? nil : RateLimit(perDay: failedLoginsPerDay)
    case .reads: readsPerSecond == 0 ? nil : RateLimit(perSecond: Double(readsPerSecond), burst: 10 * readsPerSecond)
    case .openBroadcasts, .scheduledSends, .scheduledBytes: nil
    }
  }

  /// The most objects of a quota that limits their number; 0 for no limit, and for a rate.
  package func most(_ name: QuotaName) -> Int {
    switch name {
    case .openBroadcasts: openBroadcasts
    case .scheduledSends: scheduledSends
    case .scheduledBytes: scheduledBytes
    case .sends, .devices, .registrations, .storedBytes, .failedLogins, .reads: 0
    }
  }
}

/// The quotas of all users of a hub.
package struct QuotaPolicy: Sendable {
  /// The quotas of everybody without an exception.
  package let everyone: QuotaLimits
  /// By the bytes of the name: Unicode-equivalent names are different users.
  private let exceptions: [[UInt8]: QuotaLimits]

  package init(everyone: QuotaLimits = QuotaLimits(), exceptions: [String: QuotaLimits] = [:]) {
    self.everyone = everyone
    self.exceptions = Dictionary(exceptions.map { (Array($0.utf8), $1) }) { _, last in last }
  }

  /// No quotas.
  package static let none = Self(everyone: .none)

  /// Whether the user has quotas of its own.
  package func isException(_ user: String) -> Bool { exceptions[Array(user.utf8)] != nil }

  /// The quotas of a user.
  package func limits(of user: String) -> QuotaLimits {
    exceptions.isEmpty ? everyone : exceptions[Array(user.utf8)] ?? everyone
  }
}
