import FrontEnd

/// The operations page.
///
/// - `console.enabled` (true or false, default true): whether front ends serve the page at `/console` and read the pulse
///   topic for it. The page's files contain nothing of the deployment; what it shows needs a log-in with the scope
///   `read:all` or `operate`.
/// - `console.sessionKeyFile` (text): a file with 32 to 4096 bytes of secret text that all front ends share, so that a
///   session of one is good at the others and after a restart. Without it each process makes a random key.
/// - `console.sessionSeconds` (60…43200, default 1800): the time without a request after which a session ends. It ends
///   after twelve hours in any case.
struct ConsoleSettings: Sendable {
  let isEnabled: Bool
  let sessions: SessionKey

  init(from reader: SettingsReader) throws(SettingsError) {
    isEnabled = try reader.bool("console.enabled", default: true)
    let idleTime = try reader.seconds("console.sessionSeconds", default: 1800, in: 60...43_200)
    let secret = try reader.secretFile(at: "console.sessionKeyFile")?.text()
    if let secret, !(32...4096).contains(secret.utf8.count) {
      throw SettingsError("console.sessionKeyFile", "must name a file with 32 to 4096 bytes of secret text")
    }
    sessions = SessionKey(secret: secret.map { Array($0.utf8) }, idleTime: idleTime)
  }
}
