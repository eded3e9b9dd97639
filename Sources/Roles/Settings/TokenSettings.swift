import FanfareCore
import FoundationEssentials
import FrontEnd

/// The bearer tokens (JWT) that a hub accepts from an identity provider.
///
/// They exist if `authentication.token.issuer` is set. All keys are under `hub.NAME.authentication.token.`. The names of
/// claims are dotted paths such as `realm_access.roles`; a claim of several texts is a list, or one text of words.
///
/// - `issuer` (text): the exact value of the claim `iss`.
/// - `audience` (list of texts): a token must have one of them in its claim `aud`.
/// - `keysURL` (text): the URL of the provider's JSON Web Key Set; https, or http on a loopback address.
/// - `keysFile` (text): a file with the key set, in place of `keysURL`. It is read again when it changes.
/// - `trustRootsFile` (text): certificates (PEM) to trust for `keysURL` instead of the system's.
/// - `keysRefreshSeconds` (60…86400, default 900): the time between two fetches from `keysURL`. A token with an unknown
///   key starts a fetch too, at most once a minute.
/// - `keysMaximumAgeSeconds` (60…2592000, default 86400): while the keys cannot be fetched, the old ones serve until
///   this age. After that, requests with tokens are answered 503, and the front end is not ready.
/// - `algorithms` (list, default `RS256` and `ES256`): the algorithms of signatures that are accepted.
/// - `userClaim` (text, default `sub`): the claim with the user's name.
/// - `scopeClaim` (text): the claim with the names of the bearer's scopes, which take the place of `everyone`. Names
///   that are not scopes are ignored. Without this key the scopes are those of a user with a password.
/// - `groupClaim` (text): the claim with the bearer's groups, for `grants`.
/// - `hubClaim` (text): the claim with the names of the hubs that the token is for; other tokens are refused.
struct TokenSettings: Sendable {
  let rules: TokenRules
  let keys: TokenKeys.Configuration

  init?(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(hub).authentication.token"
    let issuer = try reader.optionalString("\(prefix).issuer")
    let audience = try reader.strings("\(prefix).audience")
    let (url, file) = try reader.oneOf("\(prefix).keysURL", "\(prefix).keysFile")
    let trustRoots = try reader.contents(ofFileAt: "\(prefix).trustRootsFile")
    let refresh = try reader.int("\(prefix).keysRefreshSeconds", default: 900, in: 60...86_400)
    let age = try reader.int("\(prefix).keysMaximumAgeSeconds", default: 86_400, in: 60...2_592_000)
    let algorithms = try Self.algorithms("\(prefix).algorithms", from: reader)
    let userClaim = try reader.string("\(prefix).userClaim", default: "sub")
    let scopeClaim = try reader.optionalString("\(prefix).scopeClaim")
    let groupClaim = try reader.optionalString("\(prefix).groupClaim")
    let hubClaim = try reader.optionalString("\(prefix).hubClaim")
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
    rules.userClaim = userClaim
    rules.scopeClaim = scopeClaim
    rules.groupClaim = groupClaim
    rules.hubClaim = hubClaim
    self.rules = rules
    var keys: TokenKeys.Configuration
    switch (url, file) {
    case (let url?, nil):
      try Self.checkURL(url, key: "\(prefix).keysURL")
      keys = .init(location: .url(url, trustRoots: trustRoots.map { Array($0.utf8) }))
    case (nil, let file?): keys = .init(location: .file(file))
    default: throw SettingsError("\(prefix).keysURL", "is missing, and so is keysFile: the provider's JSON Web Key Set")
    }
    keys.algorithms = algorithms
    keys.refreshInterval = .seconds(refresh)
    keys.maximumAge = .seconds(age)
    self.keys = keys
  }

  private static func algorithms(
    _ key: String, from reader: SettingsReader
  ) throws(SettingsError) -> Set<TokenAlgorithm> {
    let usual = TokenAlgorithm.allCases.filter(TokenAlgorithm.usual.contains).map(\.rawValue)
    let names = try reader.strings(key, default: usual)
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
