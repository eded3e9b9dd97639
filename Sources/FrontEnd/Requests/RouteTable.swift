import HTTPTypes
import Synchronization

/// Which methods each path has, so that a request that matches none can be told whether the path is unknown or only the
/// method is.
final class RouteTable: Sendable {
  private struct Entry {
    let components: [Substring]
    var methods: [HTTPRequest.Method]
  }

  private let entries = Mutex<[String: Entry]>([:])

  /// Every method with its path, in the router's notation: `GET /api/sends/{id}`.
  var routes: Set<String> {
    entries.withLock { entries in Set(entries.flatMap { path, entry in entry.methods.map { "\($0.rawValue) \(path)" } })
    }
  }

  /// Why nothing answers to the method on the path.
  func refusal(of method: HTTPRequest.Method, path: String) -> Refusal {
    let components = path.split(separator: "/")
    let methods = entries.withLock { entries in
      Set(entries.values.filter { Self.matches($0.components, components) }.flatMap(\.methods))
    }
    // A path can match two patterns of which the router prefers the literal one: then there is a method for it, and yet
    // nothing there.
    guard !methods.isEmpty, !methods.contains(method) else {
      return Refusal(.notFound, "there is nothing at this path")
    }
    var refusal = Refusal(.methodNotAllowed, "the path does not have the method \(method.rawValue)")
    refusal.allowedMethods = methods.sorted { $0.rawValue < $1.rawValue }
    return refusal
  }

  /// Takes down that the path, in the router's notation, has the method.
  func add(_ path: String, method: HTTPRequest.Method) {
    entries.withLock { entries in
      var entry = entries[path] ?? Entry(components: path.split(separator: "/"), methods: [])
      entry.methods.append(method)
      // The router answers HEAD wherever there is GET.
      if method == .get { entry.methods.append(.head) }
      entries[path] = entry
    }
  }

  private static func matches(_ pattern: [Substring], _ path: [Substring]) -> Bool {
    pattern.count == path.count && zip(pattern, path).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
  }
}
