import FanfareCore
package import FrontEnd

/// How the front end checks credentials, for all hubs.
///
/// - `authentication.hashingThreads` (0…64, default 0: one fewer than the cores, 1 to 4): the most passwords that are
///   hashed at the same time.
/// - `authentication.hashingQueue` (1…100000, default 256): the most logins that wait to be hashed; for users at
///   addresses where they were authenticated lately as many again.
/// - `authentication.rememberSeconds` (0…86400, default 300): how long a verified password is accepted without hashing
///   it again, counted from its last use.
/// - `authentication.rememberAtMostSeconds` (0…604800, default 3600): the same, counted from its verification.
/// - `authentication.knownSeconds` (0…31536000, default 86400): for how long at least a user who was authenticated at
///   an address comes before strangers there, and is exempt from the budgets of failures.
/// - `authentication.failuresPerAddress` (1…1000000, default 100), `authentication.failuresPerUser` (1…1000000, default
///   20): the most failed logins of an address, and of a user at one address, within `authentication.failureSeconds`
///   (1…86400, default 600). At all addresses together a user may fail twenty times as often.
package struct AuthenticationSettings: Sendable {
  /// The threads that hash passwords; nil: as many as suit the machine.
  let hashingThreads: Int?
  let hashingQueue: Int
  let passwords: HtpasswdAuthenticator.Configuration
  let logins: LoginLimits

  init(from reader: SettingsReader) throws(SettingsError) {
    let threads = try reader.int("authentication.hashingThreads", default: 0, in: 0...64)
    hashingThreads = threads == 0 ? nil : threads
    hashingQueue = try reader.int("authentication.hashingQueue", default: 256, in: 1...100_000)
    var passwords = HtpasswdAuthenticator.Configuration()
    passwords.cacheTimeToLive = try reader.seconds("authentication.rememberSeconds", default: 300, in: 0...86_400)
    passwords.cacheLimit = try reader.seconds("authentication.rememberAtMostSeconds", default: 3600, in: 0...604_800)
    self.passwords = passwords
    var logins = LoginLimits()
    logins.perAddress = try reader.int("authentication.failuresPerAddress", default: 100, in: 1...1_000_000)
    logins.perUser = try reader.int("authentication.failuresPerUser", default: 20, in: 1...1_000_000)
    logins.window = try reader.seconds("authentication.failureSeconds", default: 600, in: 1...86_400)
    logins.knownLifetime = try reader.seconds(
      "authentication.knownSeconds", default: 86_400, in: 0...31_536_000)
    self.logins = logins
  }

  /// Makes the threads that hash the passwords of all hubs of a process.
  package func makeThreads() -> HashingThreads {
    HashingThreads(threads: hashingThreads, maximumWaiting: hashingQueue)
  }
}
