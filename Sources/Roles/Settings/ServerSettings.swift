import FanfareCore
import FoundationEssentials
package import FrontEnd

/// The front end's address and limits.
///
/// - `api.host` (text, default `127.0.0.1`), `api.port` (0…65535, default 8080)
/// - `api.maximumConnections` (1…1000000, default 8192): when there are more, those that are idle longest are closed.
/// - `api.maximumConnectionsPerAddress` (1…1000000, default 1024): of one address; trusted proxies are exempt.
/// - `api.maximumBodyBytesInMemory` (1048576…1099511627776, default 67108864): the most bytes of all bodies together.
/// - `api.maximumAnswerBytesInMemory` (1048576…1099511627776, default 67108864): the most bytes of all answers that
///   clients have not taken yet.
/// - `api.proxies` (list of addresses and CIDR ranges, default none): the proxies from which `X-Forwarded-For` is
///   believed. Without TLS they are required beyond loopback, and only they are answered there.
/// - `api.allowedOrigins` (list of origins, default none): web sites whose pages may use a browser's Basic credentials
///   and client certificates.
/// - `api.tls.…`: see `TLSSettings`.
/// - `api.securePayloadSeconds` (1…2419200, default 86400): the time for which a recipient can fetch a secure payload.
/// - `api.announceFile` (text): the file in which the role writes its `host:port` once it listens, for scripts that let
///   the kernel choose the port.
package struct APISettings: Sendable {
  package let frontEnd: FrontEndConfiguration
  let tls: TLSSettings?
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
    frontEnd.maximumConnectionsPerAddress = try reader.int(
      "api.maximumConnectionsPerAddress", default: frontEnd.maximumConnectionsPerAddress, in: 1...1_000_000)
    frontEnd.maximumBodyBytesInMemory = try reader.int(
      "api.maximumBodyBytesInMemory", default: frontEnd.maximumBodyBytesInMemory, in: 1_048_576...1_099_511_627_776)
    frontEnd.maximumAnswerBytesInMemory = try reader.int(
      "api.maximumAnswerBytesInMemory", default: frontEnd.maximumAnswerBytesInMemory, in: 1_048_576...1_099_511_627_776)
    guard let proxies = TrustedProxies(try reader.strings("api.proxies")) else {
      throw SettingsError("api.proxies", "must be a list of addresses and CIDR ranges such as 10.0.0.0/8")
    }
    frontEnd.proxies = proxies
    frontEnd.allowedOrigins = Set(try reader.strings("api.allowedOrigins"))
    guard frontEnd.allowedOrigins.allSatisfy({ $0.contains("://") && !$0.hasSuffix("/") }) else {
      throw SettingsError("api.allowedOrigins", "must be a list of origins such as https://console.example.com")
    }
    self.frontEnd = frontEnd
    tls = try TLSSettings(from: reader)
    announceFile = try reader.optionalString("api.announceFile")
  }

  /// The file with the listener's certificate; nil without TLS.
  package var certificateFile: String? { tls?.certificateFile }

  /// The host from which callers reach the server: behind a proxy they come from anywhere.
  package var reachableHost: String { frontEnd.proxies.isEmpty ? frontEnd.host : "addresses behind a proxy" }

  /// Throws unless callers' credentials are protected on their way: by TLS, by a proxy in front, or on loopback.
  func requireProtection() throws(SettingsError) {
    guard tls == nil, frontEnd.proxies.isEmpty, !DemoAuthenticator.isLoopback(frontEnd.host) else { return }
    throw SettingsError(
      "api.host",
      "must be a loopback address without TLS: set api.tls.certificateFile and api.tls.keyFile, or name in api.proxies "
        + "the proxies that end TLS")
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
package struct OperationsSettings: Sendable {
  let host: String
  let port: Int
  let announceFile: String?

  init(from reader: SettingsReader) throws(SettingsError) {
    announceFile = try reader.optionalString("operations.announceFile")
    host = try reader.string("operations.host", default: "127.0.0.1")
    port = try reader.int("operations.port", default: 0, in: 0...65535)
  }

  /// The address at which a process of this machine reaches the operations listener of a running role.
  ///
  /// Throws if the kernel chose the port and no file tells it.
  package func probedAddress() throws(SettingsError) -> String {
    if port > 0 {
      // A listener on all addresses answers on loopback too.
      let own = ["0.0.0.0": "127.0.0.1", "::": "::1"][host] ?? host
      return Announcement.address(host: own, port: port)
    }
    guard let announceFile else {
      throw SettingsError("operations.port", "must be set, or operations.announceFile, to reach the role's listener")
    }
    do {
      return String(try String(contentsOfFile: announceFile, encoding: .utf8).trimmingSuffix { $0.isNewline })
    } catch {
      throw SettingsError("operations.announceFile", "names a file that no running role has written: \(announceFile)")
    }
  }
}
