import Roles

/// The embedded cluster of `fanfare-dev broker`.
///
/// - `broker.brokers` (1…9, default 1): how many brokers it plays.
/// - `broker.announceFile` (text): where `fanfare-dev broker` writes its `host:port`, for `kafka.bootstrapServersFile` of
///   other processes: the kernel chooses the ports.
struct BrokerSettings: Sendable {
  let brokers: Int
  let announceFile: String?

  init(from reader: SettingsReader) throws(SettingsError) {
    brokers = try reader.int("broker.brokers", default: 1, in: 1...9)
    announceFile = try reader.optionalString("broker.announceFile")
  }
}
