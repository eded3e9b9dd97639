package import FanfareCore

/// A hub that the front end serves: `default` under `/api`, any under `/hubs/<name>/api`.
package struct FrontEndHub: Sendable {
  package let name: HubName
  /// Who its callers are. Hubs may share one: it is told which hub is meant.
  package let authenticator: any Authenticator
  /// What each of its senders may post; nil: as much as they like.
  package let quota: SendQuota?

  package init(name: HubName, authenticator: any Authenticator, quota: SendQuota? = nil) {
    self.name = name
    self.authenticator = authenticator
    self.quota = quota
  }
}
