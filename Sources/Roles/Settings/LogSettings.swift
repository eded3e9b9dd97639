import Logging

/// The settings of a role's log.
struct LogSettings: Sendable {
  let level: Logger.Level
  let format: LogFormat
  /// The key of the hashes in the security log; nil: a random one.
  let securityKey: [UInt8]?

  init(from reader: SettingsReader) throws(SettingsError) {
    level = try reader.choice("log.level", default: .info)
    format = try reader.choice("log.format", default: Console.isErrorTerminal ? .text : .logfmt)
    securityKey = try Self.securityKey(from: reader)
  }

  private static func securityKey(from reader: SettingsReader) throws(SettingsError) -> [UInt8]? {
    guard let text = try reader.secretFile(at: "log.securityKeyFile")?.text() else { return nil }
    let key = Array(text.utf8)
    guard (16...4096).contains(key.count) else {
      throw SettingsError("log.securityKeyFile", "must name a file with 16 to 4096 bytes of secret text")
    }
    return key
  }
}
