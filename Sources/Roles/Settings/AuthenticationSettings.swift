import FanfareCore
package import FrontEnd
import SettingsTable

/// How the front end checks credentials, for all hubs.
package struct AuthenticationSettings: Sendable {
  private(set) var passwords = Self.passwords
  private(set) var logins = Self.logins

  private static let passwords = HtpasswdAuthenticator.Configuration()
  private static let logins = LoginLimits()

  struct Keys: Sendable {
    @Setting(
      passwords, \.cacheTimeToLive, in: 0...86_400,
      "a verified password is not hashed again for this time after its last use")
    var rememberSeconds
    @Setting(
      logins, \.perAddress, in: 1...1_000_000,
      "failed logins of an address (of IPv6: a /64 network) within ten minutes")
    var failuresPerAddress
    @Setting(
      logins, \.perUser, in: 1...1_000_000,
      "failed logins of a user at one address; at all together twenty times as many")
    var failuresPerUser
  }

  static let keys = SettingsSection(
    "authentication", Keys(), "How the front end checks passwords, for all hubs.",
    // What an operator decides is the number of guesses, and how long a verified password stays valid.
    retired: [
      "hashingThreads": "as many passwords are hashed at the same time as there are cores but one, at most 4",
      "hashingQueue": "256 logins wait, and as many again of users who were authenticated lately",
      "rememberAtMostSeconds": "a verified password is hashed again after an hour at the latest",
      "knownSeconds": "a user is known at an address for a day", "failureSeconds": "failures count for ten minutes",
    ])

  /// The most logins that wait for a thread. Each holds a request; beyond it callers are answered 503 at once.
  private static let hashingQueue = 256

  init(from reader: SettingsReader) throws(SettingsError) {
    try reader.read(Self.keys, into: &passwords)
    try reader.read(Self.keys, into: &logins)
  }

  /// Makes the threads that hash the passwords of all hubs of a process.
  package func makeThreads() -> HashingThreads {
    HashingThreads(maximumWaiting: Self.hashingQueue)
  }
}
