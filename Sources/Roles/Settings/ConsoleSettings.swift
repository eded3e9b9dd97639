import FrontEnd
import SettingsTable

/// The operations page.
struct ConsoleSettings: Sendable {
  struct Keys: Sendable {
    @Setting("whether front ends serve the page") var enabled = true
    @Setting(in: 60...43_200, "without a request; a session ends after twelve hours in any case")
    var sessionSeconds = SessionKey().idleTime
    @Setting(
      example: "/etc/fanfare/session-key",
      "at least 32 bytes that all front ends share, so that a session of one is "
        + "good at the others and after a restart")
    var sessionKeyFile: SecretFile?
  }

  static let keys = SettingsSection(
    "console", Keys(),
    "The operations page of the api role, at /console. It shows nothing without a log-in with read:all or operate.")

  let isEnabled: Bool
  let sessions: SessionKey

  init(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    isEnabled = keys.enabled
    sessions = SessionKey(secret: try keys.sessionKeyFile?.bytes(32...4096), idleTime: keys.sessionSeconds)
  }
}
