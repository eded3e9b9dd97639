import FanfareCore
import FrontEnd
import SettingsTable

extension ScopePolicy {
  /// Makes the policy of the keys `everyone`, `operators` and `grants`.
  init(_ keys: HubSettings.AuthenticationKeys, of hub: HubName) throws(SettingsError) {
    let prefix = "hub.\(hub).authentication"
    let everyone = try Self.scopes(keys.everyone, of: "\(prefix).everyone")
    var (users, groups): ([ExactName: Set<Scope>], [ExactName: Set<Scope>]) = ([:], [:])
    for user in keys.operators {
      guard UserName.isValid(user) else {
        throw SettingsError("\(prefix).operators", "must be a list of user names: \(UserName.rule)")
      }
      users[ExactName(user), default: []].formUnion([.readAll, .operate])
    }
    for grant in keys.grants {
      let key = "\(prefix).grants"
      // User names have no colon.
      let parts = grant.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { throw SettingsError(key, Self.grantRule) }
      let subject = parts[0].split(separator: " ", maxSplits: 1)
      guard subject.count == 2 else { throw SettingsError(key, Self.grantRule) }
      let name = String(subject[1])
      guard UserName.isValid(name) else { throw SettingsError(key, Self.grantRule) }
      let scopes = try Self.scopes(parts[1].split(separator: " ").map(String.init), of: key)
      switch subject[0] {
      case "user": users[ExactName(name), default: []].formUnion(scopes)
      case "group": groups[ExactName(name), default: []].formUnion(scopes)
      default: throw SettingsError(key, Self.grantRule)
      }
    }
    self.init(everyone: everyone, users: users, groups: groups)
  }

  private static let grantRule =
    "must be a list of texts such as \"user alice: send:tag send:broadcast\" or \"group ops: operate\""

  private static func scopes(_ words: [String], of key: String) throws(SettingsError) -> Set<Scope> {
    var scopes: Set<Scope> = []
    for word in words {
      guard word != "sender" else {
        throw SettingsError(
          key,
          "has the word sender of earlier versions; write send:user, and send:tag, send:broadcast, send:device or "
            + "send:native where callers may send more than to single users")
      }
      guard let scope = Scope(rawValue: word) else { throw SettingsError(key, "must be a list of \(Scope.words)") }
      scopes.insert(scope)
    }
    return scopes
  }
}
