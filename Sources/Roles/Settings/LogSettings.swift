import Logging
import SettingsTable

/// The settings of a role's log.
struct LogSettings: Sendable {
  struct Keys: Sendable {
    @Setting("the least level that is logged") var level = Logger.Level.info
    @Setting(example: .logfmt, "by default text on a terminal, logfmt elsewhere") var format: LogFormat?
    @Setting(
      example: "/etc/fanfare/security-key",
      "at least 16 bytes: the key of the hashes of user names in the security "
        + "log; without it they differ after a restart and at other front ends")
    var securityKeyFile: SecretFile?
  }

  static let keys = SettingsSection("log", Keys())

  let level: Logger.Level
  let format: LogFormat
  /// The key of the hashes in the security log; nil: a random one.
  let securityKey: [UInt8]?

  init(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    level = keys.level
    format = keys.format ?? (Console.isErrorTerminal ? .text : .logfmt)
    securityKey = try keys.securityKeyFile?.bytes(16...4096)
  }
}
