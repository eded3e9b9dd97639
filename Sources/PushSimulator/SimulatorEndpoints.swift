/// The addresses of a running simulator.
package struct SimulatorEndpoints: Hashable, Sendable, Codable {
  /// The host that all listeners are bound to.
  package let host: String
  /// APNs: HTTP/2 over TLS.
  package let apnsPort: Int
  /// FCM: HTTP/2 over TLS.
  package let fcmPort: Int
  /// The token endpoints and WNS: HTTP/1.1 over TLS.
  package let httpsPort: Int
  /// The admin routes: HTTP/1.1 in the clear.
  package let adminPort: Int

  /// Google's token endpoint, as a key file's `token_uri`.
  package var googleTokenURL: String { "https://\(authority):\(httpsPort)/token" }
  /// Microsoft's token endpoint of apps with a package SID.
  package var liveTokenURL: String { "https://\(authority):\(httpsPort)/accesstoken.srf" }
  /// WNS; channels keep their own path and query here.
  package var wnsURL: String { "https://\(authority):\(httpsPort)" }
  /// The admin routes.
  package var adminURL: String { "http://\(authority):\(adminPort)" }

  /// Microsoft's token endpoint of apps that belong to a tenant.
  package func entraTokenURL(tenant: String) -> String {
    "https://\(authority):\(httpsPort)/\(tenant)/oauth2/v2.0/token"
  }

  /// The host as written in URLs.
  var authority: String { host.contains(":") ? "[\(host)]" : host }
}
