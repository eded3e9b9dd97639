import HTTPServer
import HTTPTypes

/// Refuses requests that a browser makes on behalf of somebody else's page with credentials that it adds by itself.
///
/// A browser adds Basic credentials that the user once entered, and client certificates, to requests of any page; so
/// another site could send or register in the user's name. Bearer tokens are added only by a page that knows them.
/// A log-in is refused too: the other site could log the user in as somebody else, and read what the user does then.
struct OriginRule: Sendable {
  /// The origins, such as `https://console.example.com`, whose pages may make such requests.
  let allowed: Set<String>

  /// Throws `.forbidden` for a request of a foreign page with ambient credentials, or that makes them.
  func check(_ exchange: Exchange) throws(Refusal) {
    // Only browsers send these fields.
    guard exchange.headers.hasOrigin, hasAmbientCredentials(exchange) else { return }
    let (origin, site) = (exchange.headers[.origin], exchange.headers[.secFetchSite])
    if let origin, allowed.contains(origin) { return }
    guard site != "cross-site", site != "same-site", isOwn(origin, of: exchange) else {
      throw Refusal(.forbidden, "requests of other sites' pages are refused; api.allowedOrigins can name exceptions")
    }
  }

  private func hasAmbientCredentials(_ exchange: Exchange) -> Bool {
    if exchange.method == .post, exchange.path.hasSuffix("/" + SessionRoutes.path) { return true }
    guard let field = exchange.headers.authorization else {
      // A link on another site may lead to the operations page, and the browser then adds cookies of this site or of
      // its parent domain. The other site cannot read the answer, and changes also need the session's token.
      let changes = ![.get, .head, .options].contains(exchange.method)
      return exchange.clientCertificate != nil || (changes && exchange.headers.hasCookie)
    }
    return field.utf8.prefix(6).elementsEqual("basic ".utf8) { $0 | 0x20 == $1 | 0x20 }
  }

  /// Whether the origin is the server's own: a page of the address to which the request goes, or none.
  private func isOwn(_ origin: String?, of exchange: Exchange) -> Bool {
    guard let origin else { return true }
    // `null` is the origin of a sandboxed page.
    guard let start = origin.firstRange(of: "://")?.upperBound, let host = exchange.authority else { return false }
    // The scheme is not compared: a proxy may end TLS.
    return origin[start...].lowercased() == host.lowercased()
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; this literal is valid.
  fileprivate static let secFetchSite = HTTPField.Name("Sec-Fetch-Site")!
}
