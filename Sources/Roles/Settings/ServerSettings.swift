import FanfareCore
import FoundationEssentials
package import FrontEnd
import HTTPServer
package import SettingsTable

/// The front end's address and limits.
package struct APISettings: Sendable {
  package let frontEnd: FrontEndConfiguration
  let tls: TLSSettings?
  let announceFile: String?

  private static let standard = FrontEndConfiguration()

  struct Keys: Sendable {
    @Setting("the address to listen on") var host = standard.host
    @Setting(in: 0...65535, "0: the kernel chooses") var port = standard.port
    @Setting(in: 1...1_000_000, "when there are more, those that are idle longest are closed")
    var maximumConnections = standard.maximumConnections
    @Setting(in: 1...1_000_000, "of IPv6 addresses the first 64 bits count; proxies are exempt")
    var maximumConnectionsPerAddress = standard.maximumConnectionsPerAddress
    @Setting(in: 1_048_576...1_099_511_627_776, "of all request bodies together")
    var maximumBodyBytesInMemory = standard.maximumBodyBytesInMemory
    @Setting(in: 1_048_576...1_099_511_627_776, "of all answers together that clients have not read yet")
    var maximumAnswerBytesInMemory = standard.maximumAnswerBytesInMemory
    @Setting("addresses and CIDR ranges of the proxies that end TLS, and from which X-Forwarded-For is believed")
    var proxies: [String] = []
    @Setting("web sites whose pages may use a browser's Basic credentials or certificates")
    var allowedOrigins: [String] = []
    @Setting(in: 1...2_419_200, "how long a recipient can fetch a secure payload")
    var securePayloadSeconds = standard.securePayloadLifetime
    @Setting(example: "api.address", "the file to which the role writes its host:port once it listens")
    var announceFile: String?
  }

  static let keys = SettingsSection("api", Keys())

  init(from reader: SettingsReader, topics: Topics, logins: LoginLimits) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    var frontEnd = Self.standard
    (frontEnd.host, frontEnd.port) = (keys.host, keys.port)
    frontEnd.maximumConnections = keys.maximumConnections
    frontEnd.maximumConnectionsPerAddress = keys.maximumConnectionsPerAddress
    frontEnd.maximumBodyBytesInMemory = keys.maximumBodyBytesInMemory
    frontEnd.maximumAnswerBytesInMemory = keys.maximumAnswerBytesInMemory
    frontEnd.securePayloadLifetime = keys.securePayloadSeconds
    frontEnd.topics = topics
    frontEnd.logins = logins
    guard let proxies = TrustedProxies(keys.proxies) else {
      throw SettingsError("api.proxies", "must be a list of addresses and CIDR ranges such as 10.0.0.0/8")
    }
    frontEnd.proxies = proxies
    frontEnd.allowedOrigins = Set(keys.allowedOrigins)
    guard frontEnd.allowedOrigins.allSatisfy({ $0.contains("://") && !$0.hasSuffix("/") }) else {
      throw SettingsError("api.allowedOrigins", "must be a list of origins such as https://console.example.com")
    }
    self.frontEnd = frontEnd
    tls = try TLSSettings(from: reader)
    announceFile = keys.announceFile
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
package struct OperationsSettings: Sendable {
  @Setting("loopback, or an address in a network of operators") var host = "127.0.0.1"
  @Setting(in: 0...65535, "0: the kernel chooses; the role logs it") var port = 0
  @Setting(example: "api.operations", "the file to which the role writes its host:port; another one for each role")
  var announceFile: String?

  static let keys = SettingsSection(
    "operations", OperationsSettings(),
    "Serves /healthz, /readyz and /metrics of every role, without credentials.")

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
