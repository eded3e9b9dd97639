import FanfareCore
import HTTPTypes
import Hummingbird
import Synchronization

/// The methods of each path, to tell an unknown method (405) from an unknown path (404).
final class RouteTable: Sendable {
  private struct Entry {
    let components: [Substring]
    var methods: [HTTPRequest.Method]
  }

  private let entries = Mutex<[String: Entry]>([:])

  /// All methods with their paths in the router's notation: `GET /api/sends/{id}`.
  var routes: Set<String> {
    entries.withLock { entries in Set(entries.flatMap { path, entry in entry.methods.map { "\($0.rawValue) \(path)" } })
    }
  }

  /// Returns why no route matches a request.
  func refusal(of method: HTTPRequest.Method, path: String) -> Refusal {
    guard Self.knownMethods.contains(method) else {
      return Refusal(.notImplemented, "this server does not know the request's method")
    }
    let components = path.split(separator: "/")
    // Like the router, prefers literal components: `/api/sends/batch` is not the report of a send.
    let entry = entries.withLock { entries in
      entries.values.filter { Self.matches($0.components, components) }
        .min { $0.components.count(where: Self.isParameter) < $1.components.count(where: Self.isParameter) }
    }
    guard let entry, !entry.methods.contains(method) else { return Refusal(.notFound, "there is no such route") }
    var refusal = Refusal(.methodNotAllowed, "this path does not have the method \(method.rawValue)")
    refusal.allowedMethods = entry.methods.sorted { $0.rawValue < $1.rawValue }
    return refusal
  }

  /// Records a route; the path is in the router's notation.
  func add(_ path: String, method: HTTPRequest.Method) {
    entries.withLock { entries in
      var entry = entries[path] ?? Entry(components: path.split(separator: "/"), methods: [])
      entry.methods.append(method)
      // The router answers HEAD for every GET.
      if method == .get { entry.methods.append(.head) }
      entries[path] = entry
    }
  }

  /// The methods of RFC 9110 and RFC 5789, and QUERY, which is being standardised. Others are answered 501.
  private static let knownMethods = Set(
    [.get, .head, .post, .put, .delete, .connect, .options, .trace, .patch]
      + [HTTPRequest.Method("QUERY")].compactMap { $0 })

  private static func matches(_ pattern: [Substring], _ path: [Substring]) -> Bool {
    pattern.count == path.count && zip(pattern, path).allSatisfy { isParameter($0) || $0 == $1 }
  }

  private static func isParameter(_ component: Substring) -> Bool { component.hasPrefix("{") }
}

/// A router that records every route in a `RouteTable`.
struct RecordingRouter: RouterMethods {
  typealias Context = FrontEndContext

  let router: Router<FrontEndContext>
  let routes: RouteTable

  @discardableResult
  func on<Responder: HTTPResponder>(
    _ path: RouterPath, method: HTTPRequest.Method, responder: Responder
  ) -> Self where Responder.Context == FrontEndContext {
    router.on(path, method: method, responder: responder)
    routes.add(path.description, method: method)
    return self
  }

  @discardableResult
  func add(middleware: any MiddlewareProtocol<Request, Response, FrontEndContext>) -> Self {
    router.add(middleware: middleware)
    return self
  }
}
