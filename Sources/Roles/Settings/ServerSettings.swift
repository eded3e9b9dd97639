import FanfareCore
import FoundationEssentials
package import FrontEnd
import HTTPServer
package import SettingsTable

/// The front end's address and limits.
package struct APISettings: Sendable {
  package private(set) var frontEnd = Self.standard
  let tls: TLSSettings?
  let announceFile: String?

  private static let standard = FrontEndConfiguration()

  struct Keys: Sendable {
    @Setting(standard, \.host, "the address to listen on") var host
    @Setting(standard, \.port, in: 0...65535, "0: the kernel chooses") var port
    @Setting(standard, \.maximumConnections, in: 1...1_000_000, "when there are more, the longest idle are closed")
    var maximumConnections
    @Setting(
      standard, \.maximumConnectionsPerAddress, in: 1...1_000_000,
      "of IPv6 addresses the first 64 bits count; proxies are exempt")
    var maximumConnectionsPerAddress
    @Setting("addresses and CIDR ranges of the proxies that end TLS, and from which X-Forwarded-For is believed")
    var proxies: [String] = []
    @Setting("web sites whose pages may use a browser's Basic credentials or certificates")
    var allowedOrigins: [String] = []
    @Setting(standard, \.securePayloadLifetime, in: 1...2_419_200, "how long a recipient can fetch a secure payload")
    var securePayloadSeconds
    @Setting(example: "api.address", "the file to which the role writes its host:port once it listens")
    var announceFile: String?
  }

  static let keys = SettingsSection(
    "api", Keys(),
    retired: [
      // Each caller has a share of them, so that more would only delay the refusal.
      "maximumBodyBytesInMemory": "all request bodies together have 64 MiB",
      "maximumAnswerBytesInMemory": "all answers that clients have not read have 64 MiB together",
    ])

  init(from reader: SettingsReader, topics: Topics, logins: LoginLimits) throws(SettingsError) {
    let keys = try reader.read(Self.keys, into: &frontEnd)
    (frontEnd.topics, frontEnd.logins) = (topics, logins)
    guard let proxies = TrustedProxies(keys.proxies) else {
      throw SettingsError("api.proxies", "must be a list of addresses and CIDR ranges such as 10.0.0.0/8")
    }
    frontEnd.proxies = proxies
    frontEnd.allowedOrigins = Set(keys.allowedOrigins)
    guard frontEnd.allowedOrigins.allSatisfy({ $0.contains("://") && !$0.hasSuffix("/") }) else {
      throw SettingsError("api.allowedOrigins", "must be a list of origins such as https://console.example.com")
    }
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
