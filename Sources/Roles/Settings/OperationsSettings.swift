/// Where a worker and a ledger answer `/healthz`, `/readyz` and `/metrics`; the front end does so on its own port.
///
/// - `operations.host` (text, default `127.0.0.1`)
/// - `operations.port` (0…65535, default 0): 0 lets the kernel choose; the role logs where it listens.
struct OperationsSettings: Sendable {
  let host: String
  let port: Int

  init(from reader: SettingsReader) throws(SettingsError) {
    host = try reader.string("operations.host", default: "127.0.0.1")
    port = try reader.int("operations.port", default: 0, in: 0...65535)
  }
}
