package import FanfareCore

/// A hub that the front end serves: `default` under `/api`, any under `/hubs/<name>/api`.
package struct FrontEndHub: Sendable {
  package let name: HubName
  /// Who its callers are. Hubs may share one: it is told which hub is meant.
  package let authenticator: any Authenticator

  package init(name: HubName, authenticator: any Authenticator) {
    self.name = name
    self.authenticator = authenticator
  }
}
