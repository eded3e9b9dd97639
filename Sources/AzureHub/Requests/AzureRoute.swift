import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// A route below a hub: method, pattern, the right that it needs, and what it does.
struct AzureRoute: Sendable {
  typealias Handler = @Sendable (AzureRequest, Caller) async throws -> Answer

  let method: HTTPRequest.Method
  /// The components of the path in lower case; those in braces stand for any text.
  let components: [String]
  let right: SharedAccessRight
  let handle: Handler
  /// Answers a request whose URL is signed, and which needs no token then; see `SignedURL`.
  var handleSigned: (@Sendable (AzureRequest) async throws -> Answer)?

  /// `pattern` is a path below the hub such as `messages/{id}`; empty for the hub itself.
  init(_ method: HTTPRequest.Method, _ pattern: String, _ right: SharedAccessRight, _ handle: @escaping Handler) {
    self.method = method
    components = pattern.split(separator: "/").map(String.init)
    self.right = right
    self.handle = handle
  }

  /// A route whose URLs are signed; with a token it needs the right to manage.
  init(
    signed method: HTTPRequest.Method, _ pattern: String,
    _ handle: @escaping @Sendable (AzureRequest) async throws -> Answer
  ) {
    self.method = method
    components = pattern.split(separator: "/").map(String.init)
    right = .manage
    self.handle = { request, _ in try await handle(request) }
    handleSigned = handle
  }

  /// The pattern with the hub, for metrics.
  var pattern: String { (["/{hub}"] + components).joined(separator: "/") }

  /// The texts that stand for the open components; nil if the path does not match.
  func parameters(in segments: [String]) -> [String]? {
    guard segments.count == components.count else { return nil }
    var parameters: [String] = []
    for (segment, component) in zip(segments, components) {
      if component.hasPrefix("{") {
        parameters.append(segment)
      } else if segment.lowercased() != component {
        return nil
      }
    }
    return parameters
  }

  /// The number of open components; of several routes that match, the one with the fewest is meant.
  var openness: Int { components.count { $0.hasPrefix("{") } }
}
