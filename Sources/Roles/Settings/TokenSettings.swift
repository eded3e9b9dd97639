import FanfareCore
import FoundationEssentials
import FrontEnd
import SettingsTable

/// The bearer tokens (JWT) that a hub accepts from an identity provider.
///
/// They exist if `issuer` is set. The names of claims are dotted paths such as `realm_access.roles`; a claim of several
/// texts is a list, or one text of words.
struct TokenSettings: Sendable {
  let rules: TokenRules
  let keys: TokenKeys.Configuration

  struct Keys: Sendable {
    @Setting(example: "https://sso.example.com/realms/shop", "the exact value of the claim iss") var issuer: String?
    @Setting("a token must have one of these in its claim aud") var audience: [String] = []
    @Setting(
      example: "https://sso.example.com/realms/shop/protocol/openid-connect/certs", "the provider's JSON Web Key Set")
    var keysURL: String?
    @Setting(example: "/etc/fanfare/jwks.json", "instead of keysURL; read again when it changes") var keysFile: String?
    @Setting(contents: "roots.pem", "for keysURL; replaces the system's trust roots") var trustRootsFile: String?
    @Setting("the algorithms of signatures that are accepted")
    var algorithms = TokenAlgorithm.allCases.filter(TokenAlgorithm.usual.contains).map(\.rawValue)
    @Setting("the claim with the user's name") var userClaim = "sub"
    @Setting(example: "resource_access.fanfare.roles", "its scopes take the place of everyone") var scopeClaim: String?
    @Setting(example: "realm_access.roles", "for grants") var groupClaim: String?
    @Setting(example: "hubs", "the hubs that a token is for; other tokens are refused") var hubClaim: String?
  }

  static let keys = SettingsSection(
    "hub.NAME.authentication.token", Keys(),
    "Tokens of an identity provider. Claims are dotted paths: realm_access.roles",
    // An unknown key starts a fetch too, so that the interval matters for withdrawn keys alone.
    retired: [
      "keysRefreshSeconds":
        "keys are fetched every quarter of an hour, and because of an unknown key at most once a minute",
      "keysMaximumAgeSeconds": "while the URL fails, old keys serve for a day",
    ])

  init?(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(hub).authentication.token"
    let given = try reader.read(Self.keys, of: hub.rawValue)
    let (issuer, audience) = (given.issuer, given.audience)
    let (url, file) = try reader.oneOf("\(prefix).keysURL", "\(prefix).keysFile")
    let algorithms = try Self.algorithms(given.algorithms, "\(prefix).algorithms")
    guard let issuer else {
      guard url == nil, file == nil, audience.isEmpty else {
        throw SettingsError("\(prefix).issuer", "is missing: the claim iss of the tokens to accept")
      }
      return nil
    }
    guard !audience.isEmpty, !audience.contains("") else {
      throw SettingsError(
        "\(prefix).audience", "must name the audience of the tokens: those for other services are refused")
    }
    var rules = TokenRules(issuer: issuer, audiences: audience)
    rules.algorithms = algorithms
    rules.userClaim = given.userClaim
    rules.scopeClaim = given.scopeClaim
    rules.groupClaim = given.groupClaim
    rules.hubClaim = given.hubClaim
    self.rules = rules
    var keys: TokenKeys.Configuration
    switch (url, file) {
    case (let url?, nil):
      try Self.checkURL(url, key: "\(prefix).keysURL")
      keys = .init(location: .url(url, trustRoots: given.trustRootsFile.map { Array($0.utf8) }))
    case (nil, let file?): keys = .init(location: .file(file))
    default: throw SettingsError("\(prefix).keysURL", "is missing, and so is keysFile: the provider's JSON Web Key Set")
    }
    keys.algorithms = algorithms
    self.keys = keys
  }

  private static func algorithms(_ names: [String], _ key: String) throws(SettingsError) -> Set<TokenAlgorithm> {
    let algorithms = names.compactMap { TokenAlgorithm(rawValue: $0) }
    guard !names.isEmpty, algorithms.count == names.count else {
      let all = TokenAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
      throw SettingsError(key, "must be a list of \(all)")
    }
    return Set(algorithms)
  }

  /// Throws unless the URL is of https, or of http on a loopback address.
  private static func checkURL(_ text: String, key: String) throws(SettingsError) {
    let url = URL(string: text)
    let isAllowed =
      switch url?.scheme {
      case "https": url?.host?.isEmpty == false
      case "http": ["127.0.0.1", "::1", "[::1]", "localhost"].contains(url?.host)
      default: false
      }
    guard isAllowed else { throw SettingsError(key, "must be a URL of https, or of http on a loopback address") }
  }
}
