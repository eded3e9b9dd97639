import FanfareCore
import FrontEnd

/// URLs of files that need no token: they are signed by the server, and expire.
enum SignedURL {
  static let lifetime = Duration.seconds(86_400)

  /// The URL of a path below the request's hub.
  static func url(_ path: String, _ request: AzureRequest, _ hub: HubName, _ operations: FrontEndOperations) -> String {
    let expiry = "\((operations.clock.now() + lifetime).seconds)"
    let signature = operations.signature(ofURL: text(path, hub, expiry))
    return "\(request.root)/\(path)?se=\(expiry)&sig=\(signature)"
  }

  /// Whether the request's URL is signed and has not expired.
  static func holds(for request: AzureRequest, _ operations: FrontEndOperations) -> Bool {
    guard let hub = request.hub, let expiry = request.value("se"), let signature = request.value("sig") else {
      return false
    }
    return holds(request.path, hub, expiry: expiry, signature: signature, operations)
  }

  /// The hub and the parts of the path below it that a signed URL of this server names; nil for any other text. The
  /// host plays no part: nothing is fetched.
  static func target(of url: String, _ operations: FrontEndOperations) -> (hub: HubName, path: [String])? {
    guard let start = url.firstRange(of: "://")?.upperBound else { return nil }
    let parts = url[start...].split(separator: "?", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    var values: [Substring: String] = [:]
    for item in parts[1].split(separator: "&") {
      let pair = item.split(separator: "=", maxSplits: 1)
      if pair.count == 2 { values[pair[0]] = String(pair[1]) }
    }
    guard let expiry = values["se"], let signature = values["sig"] else { return nil }
    // `jobs`, the id and the name of the file.
    let path = parts[0].split(separator: "/").suffix(3).map(String.init)
    let hub = operations.hubs.first {
      holds(path.joined(separator: "/"), $0, expiry: expiry, signature: signature, operations)
    }
    return hub.map { ($0, path) }
  }

  private static func holds(
    _ path: String, _ hub: HubName, expiry: String, signature: String, _ operations: FrontEndOperations
  ) -> Bool {
    guard let seconds = Int64(expiry), seconds > operations.clock.now().seconds else { return false }
    return operations.accepts(signature: signature, ofURL: text(path, hub, expiry))
  }

  private static func text(_ path: String, _ hub: HubName, _ expiry: String) -> String { "\(hub)/\(path)\n\(expiry)" }
}

extension AzureRequest {
  /// The path below the hub.
  fileprivate var path: String { segments.joined(separator: "/") }
}
