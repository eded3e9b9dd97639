import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// A request in Azure's protocol: `/{hub}/messages?api-version=2020-06&direct`.
struct AzureRequest: Sendable {
  let original: Exchange
  /// The hub as the path names it; it may not exist.
  let hubText: String
  /// The hub that is meant by it; nil if there is none.
  let hub: HubName?
  /// The path in front of the hub, without a slash at its end.
  let prefix: String
  /// The parts of the path that the route's pattern leaves open, decoded.
  let parameters: [String]
  /// The path below the hub.
  let segments: [String]
  /// Names in lower case.
  private let query: [(name: String, value: String)]

  /// `pattern`: that of the route.
  init(_ request: Exchange, _ target: AzureTarget, hub: HubName?, pattern: String) throws(Refusal) {
    original = request
    (hubText, self.hub, prefix) = (target.hub, hub, target.prefix)
    parameters = zip(pattern.split(separator: "/"), target.segments).compactMap { $0.hasPrefix("{") ? $1 : nil }
    segments = target.segments
    query = try request.query().map { ($0.name.lowercased(), $0.value) }
  }

  /// The value of a query parameter in any letter case; empty if it has none, nil if it is missing.
  func value(_ name: String) -> String? { query.first { $0.name == name }?.value }

  /// Whether a flag is given, as `direct`, `direct=` or `direct=true`.
  func has(_ flag: String) -> Bool { value(flag).map { $0.lowercased() != "false" } ?? false }

  /// The first value of a header field; nil if it is missing or empty.
  func header(_ name: HTTPField.Name) -> String? {
    original.headers[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The version of the protocol that the client asks for; the newest if it names none.
  var version: String { value("api-version").flatMap { $0.isEmpty ? nil : $0 } ?? "2020-06" }

  /// The root of all hubs as a URL: `https://ns.example.com`.
  var server: String {
    "\(original.isSecure ? "https" : "http")://\(original.authority ?? "localhost")\(prefix)"
  }

  /// The root of the hub as a URL: `https://ns.example.com/hub`.
  var root: String { "\(server)/\(hubText)" }

  /// The URL of something in the hub: `https://ns.example.com/hub/messages/{id}?api-version=2020-06`.
  func location(_ path: String, flags: [String] = []) -> String {
    let version = version.utf8.allSatisfy { $0.isLetterOrDigit || "-._".utf8.contains($0) } ? version : "2020-06"
    return "\(root)/\(path)?api-version=\(version)" + flags.map { "&\($0)" }.joined()
  }

  /// The whole body. Throws `.tooLarge` if it has more than `limit` bytes.
  func body(upTo limit: Int) async throws -> ArraySlice<UInt8> { try await original.bytes(upTo: limit) }
}

/// The target of a request: an optional prefix, the hub, and the path below it.
struct AzureTarget: Sendable {
  let prefix: String
  /// Decoded.
  let hub: String
  /// Decoded.
  let segments: [String]

  /// What routes are found by: hub and path in lower case, decoded but for the characters that divide a target.
  var normal: RequestTarget {
    let segments = ([hub.isEmpty ? "-" : hub] + segments).map {
      $0.lowercased().replacing("/", with: "%2f").replacing("?", with: "%3f")
    }
    return RequestTarget("/" + segments.joined(separator: "/"))
  }

  /// Whether it is the list of hubs, `/$Resources/NotificationHubs` or `/`, and no hub.
  var isOfHubs: Bool {
    hub.isEmpty || hub.lowercased() == "$resources" && segments.map { $0.lowercased() } == ["notificationhubs"]
  }

  /// Divides a path; nil if it does not begin with the prefix or has a malformed escape. Letter case, repeated slashes
  /// and one at the end play no part.
  init?(path: Substring, prefix: [String]) {
    var segments: [String] = []
    for part in path.split(separator: "/") {
      guard let segment = Exchange.decoded(part) else { return nil }
      segments.append(segment)
    }
    guard segments.count >= prefix.count,
      zip(segments, prefix).allSatisfy({ $0.lowercased() == $1.lowercased() })
    else { return nil }
    self.prefix = prefix.map { "/\($0)" }.joined()
    hub = segments.count == prefix.count ? "" : segments[prefix.count]
    self.segments = Array(segments.dropFirst(prefix.count + 1))
  }
}
