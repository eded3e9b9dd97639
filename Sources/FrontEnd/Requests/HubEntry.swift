import FanfareCore

/// One hub as the routes see it.
struct HubEntry: Sendable {
  let name: HubName
  let authenticator: any Authenticator
  let metrics: HubMetrics
  /// Nil where nobody is held to any.
  let quotas: SenderQuotas?

  init(_ hub: FrontEndHub) {
    name = hub.name
    authenticator = hub.authenticator
    metrics = HubMetrics(hub: hub.name)
    quotas = hub.quota.map(SenderQuotas.init)
  }

  /// Where a send of the hub can be looked up.
  func location(of send: SendID) -> String {
    name == .default ? "/api/sends/\(send)" : "/hubs/\(name)/api/sends/\(send)"
  }
}
