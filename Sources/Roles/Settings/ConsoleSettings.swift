import FrontEnd
import SettingsTable

/// The operations page.
struct ConsoleSettings: Sendable {
  struct Keys: Sendable {
    @Setting("whether front ends serve the page") var enabled = true
    @Setting(
      example: "/etc/fanfare/session-key",
      "at least 32 bytes that all front ends share, so that a session of one is "
        + "good at the others and after a restart")
    var sessionKeyFile: SecretFile?
  }

  static let keys = SettingsSection(
    "console", Keys(),
    "The operations page of the api role, at /console. It shows nothing without a log-in with read:all or operate.",
    // The page asks for news all the time, so that only a closed browser is without a request.
    retired: ["sessionSeconds": "a session ends after half an hour without a request, and after twelve in any case"])

  let isEnabled: Bool
  let sessions: SessionKey

  init(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    isEnabled = keys.enabled
    sessions = SessionKey(secret: try keys.sessionKeyFile?.bytes(32...4096))
  }
}
