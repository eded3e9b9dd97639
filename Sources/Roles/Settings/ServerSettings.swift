import FanfareCore
package import FrontEnd

/// The front end's address and limits.
///
/// - `api.host` (text, default `127.0.0.1`), `api.port` (0…65535, default 8080)
/// - `api.maximumConnections` (1…1000000, default 8192)
/// - `api.securePayloadSeconds` (1…2419200, default 86400): the time for which a recipient can fetch a secure payload.
/// - `api.announceFile` (text): the file in which the role writes its `host:port` once it listens, for scripts that let
///   the kernel choose the port.
package struct APISettings: Sendable {
  package let frontEnd: FrontEndConfiguration
  let announceFile: String?

  init(from reader: SettingsReader, topics: Topics, logins: LoginLimits) throws(SettingsError) {
    var frontEnd = FrontEndConfiguration()
    frontEnd.topics = topics
    frontEnd.logins = logins
    frontEnd.host = try reader.string("api.host", default: frontEnd.host)
    frontEnd.port = try reader.int("api.port", default: frontEnd.port, in: 0...65535)
    frontEnd.maximumConnections = try reader.int(
      "api.maximumConnections", default: frontEnd.maximumConnections, in: 1...1_000_000)
    frontEnd.securePayloadLifetime = try reader.seconds("api.securePayloadSeconds", default: 86_400, in: 1...2_419_200)
    self.frontEnd = frontEnd
    announceFile = try reader.optionalString("api.announceFile")
  }
}

/// The address at which every role answers `/healthz`, `/readyz` and `/metrics`.
///
/// It asks for no credentials, so it belongs on loopback or in a network of operators.
///
/// - `operations.host` (text, default `127.0.0.1`)
/// - `operations.port` (0…65535, default 0): 0 lets the kernel choose; the role logs its address.
/// - `operations.announceFile` (text): the file in which the role writes this address once it listens. Roles that share
///   a configuration file need one each, for example from the environment.
struct OperationsSettings: Sendable {
  let host: String
  let port: Int
  let announceFile: String?

  init(from reader: SettingsReader) throws(SettingsError) {
    announceFile = try reader.optionalString("operations.announceFile")
    host = try reader.string("operations.host", default: "127.0.0.1")
    port = try reader.int("operations.port", default: 0, in: 0...65535)
  }
}
