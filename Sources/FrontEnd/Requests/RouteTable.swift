import HTTPTypes
import Hummingbird
import Synchronization

/// A router that remembers which methods each path has, so that a request that matches none can be told whether the path is unknown or
/// only the method is.
final class RouteTable: RouterMethods {
  typealias Context = FrontEndContext

  private struct Entry {
    let components: [Substring]
    var methods: [HTTPRequest.Method]
  }

  private let router: Router<FrontEndContext>
  private let entries = Mutex<[String: Entry]>([:])

  init(router: Router<FrontEndContext>) {
    self.router = router
  }

  /// Why nothing answers to the method on the path.
  func refusal(of method: HTTPRequest.Method, path: String) -> Refusal {
    let components = path.split(separator: "/")
    let methods = entries.withLock { entries in
      Set(entries.values.filter { Self.matches($0.components, components) }.flatMap(\.methods))
    }
    // A path can match two patterns of which the router prefers the literal one: then there is a method for it, and yet nothing there.
    guard !methods.isEmpty, !methods.contains(method) else { return Refusal(.notFound, "there is nothing at this path") }
    var refusal = Refusal(.methodNotAllowed, "the path does not have the method \(method.rawValue)")
    refusal.allowedMethods = methods.sorted { $0.rawValue < $1.rawValue }
    return refusal
  }

  @discardableResult
  func on<Responder: HTTPResponder>(
    _ path: RouterPath, method: HTTPRequest.Method, responder: Responder
  ) -> Self where Responder.Context == FrontEndContext {
    router.on(path, method: method, responder: responder)
    entries.withLock { entries in
      var entry = entries[path.description] ?? Entry(components: path.description.split(separator: "/"), methods: [])
      entry.methods.append(method)
      // The router answers HEAD wherever there is GET.
      if method == .get { entry.methods.append(.head) }
      entries[path.description] = entry
    }
    return self
  }

  @discardableResult
  func add(middleware: any MiddlewareProtocol<Request, Response, FrontEndContext>) -> Self {
    router.add(middleware: middleware)
    return self
  }

  private static func matches(_ pattern: [Substring], _ path: [Substring]) -> Bool {
    pattern.count == path.count && zip(pattern, path).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
  }
}
