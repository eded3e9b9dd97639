import FanfareCore
package import FrontEnd
import SettingsTable

/// How the front end checks credentials, for all hubs.
package struct AuthenticationSettings: Sendable {
  @Setting(in: 0...64, "passwords hashed at the same time; 0: one fewer than the cores, 1 to 4")
  var hashingThreads = 0
  @Setting(in: 0...86_400, "a verified password is not hashed again for this time after its last use")
  var rememberSeconds = HtpasswdAuthenticator.Configuration().cacheTimeToLive
  @Setting(in: 1...1_000_000, "failed logins of an address (of IPv6: a /64 network) within ten minutes")
  var failuresPerAddress = LoginLimits().perAddress
  @Setting(in: 1...1_000_000, "failed logins of a user at one address; at all together twenty times as many")
  var failuresPerUser = LoginLimits().perUser

  static let keys = SettingsSection(
    "authentication", AuthenticationSettings(), "How the front end checks passwords, for all hubs.",
    // What an operator decides is the number of guesses, and how long a verified password stays valid.
    retired: [
      "hashingQueue": "256 logins wait, and as many again of users who were authenticated lately",
      "rememberAtMostSeconds": "a verified password is hashed again after an hour at the latest",
      "knownSeconds": "a user is known at an address for a day", "failureSeconds": "failures count for ten minutes",
    ])

  /// The most logins that wait for a thread. Each holds a request; beyond it callers are answered 503 at once.
  private static let hashingQueue = 256

  var passwords: HtpasswdAuthenticator.Configuration {
    var passwords = HtpasswdAuthenticator.Configuration()
    passwords.cacheTimeToLive = rememberSeconds
    return passwords
  }

  var logins: LoginLimits {
    var logins = LoginLimits()
    (logins.perAddress, logins.perUser) = (failuresPerAddress, failuresPerUser)
    return logins
  }

  /// Makes the threads that hash the passwords of all hubs of a process.
  package func makeThreads() -> HashingThreads {
    HashingThreads(threads: hashingThreads == 0 ? nil : hashingThreads, maximumWaiting: Self.hashingQueue)
  }
}
