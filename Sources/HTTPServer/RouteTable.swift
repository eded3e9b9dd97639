package import HTTPTypes

/// The routes of a listener: finds the one of a request, and knows the methods of each path.
///
/// A pattern is a path such as `api/sends/{id}`; a component in braces stands for any text. Of several patterns that
/// match, one with a literal component comes before one with an open component in the same place. Repeated slashes and
/// those at the end play no part. The last component may be `{name...}`, which stands for the rest of a path. GET routes
/// answer HEAD too, unless the table is made without `answersHead`.
package struct RouteTable<Route: Sendable>: Sendable {
  package enum Match: Sendable {
    case found(Route, pattern: String, PathParameters)
    /// The path has these methods.
    case otherMethods([HTTPRequest.Method])
    case unknownPath
    /// The server knows the method on no path.
    case unknownMethod
  }

  private var paths: PathTable
  private var routes: [Route] = []

  package init(answersHead: Bool = true) { paths = PathTable(answersHead: answersHead) }

  /// All routes with their methods and patterns, which begin with a slash.
  package var all: [(method: HTTPRequest.Method, pattern: String, route: Route)] {
    paths.endpoints.flatMap { endpoint in
      zip(endpoint.methods, endpoint.routes).map { ($0, endpoint.pattern, routes[$1]) }
    }
  }

  package mutating func add(_ method: HTTPRequest.Method, _ pattern: String, _ route: Route) {
    paths.add(method, pattern, routes.count)
    routes.append(route)
  }

  /// Finds the route of a request.
  package func find(_ method: HTTPRequest.Method, _ target: RequestTarget) -> Match {
    switch paths.find(method, target) {
    case .found(let index, let pattern, let parameters): .found(routes[index], pattern: pattern, parameters)
    case .otherMethods(let methods): .otherMethods(methods)
    case .unknownPath: .unknownPath
    case .unknownMethod: .unknownMethod
    }
  }
}

/// The patterns of a `RouteTable`, which knows its routes by number: generic code costs more for each request.
private struct PathTable {
  /// A component of patterns.
  private struct Literal {
    /// Its place in `texts`.
    let text: Range<Int>
    let node: Int
  }

  private struct Node {
    var literals: [Literal] = []
    var open: Int?
    /// The index in `endpoints`, of a path that ends here.
    var endpoint: Int?
    /// The same of any longer path.
    var rest: Int?
  }

  struct Endpoint {
    /// With a slash at its beginning.
    let pattern: String
    let names: [String]
    var methods: [HTTPRequest.Method] = []
    /// The numbers of their routes.
    var routes: [Int] = []
  }

  private var nodes = [Node()]
  private(set) var endpoints: [Endpoint] = []
  /// The texts of all literals, one after the other: looking at them counts no references.
  private var texts: [UInt8] = []
  let answersHead: Bool

  init(answersHead: Bool) { self.answersHead = answersHead }

  mutating func add(_ method: HTTPRequest.Method, _ pattern: String, _ route: Int) {
    let components = pattern.split(separator: "/")
    var (place, names): (Int, [String]) = (0, [])
    for component in components where !component.hasSuffix("...}") {
      if component.hasPrefix("{") {
        names.append(String(component.dropFirst().dropLast()))
        place = nodes[place].open ?? grow { $0[place].open = $1 }
      } else {
        let text = Array(component.utf8)
        let known = nodes[place].literals.first { texts[$0.text].elementsEqual(text) }
        texts += text
        let range = texts.count - text.count..<texts.count
        place = known?.node ?? grow { $0[place].literals.append(Literal(text: range, node: $1)) }
      }
    }
    let end = components.last.flatMap { $0.hasSuffix("...}") ? String($0.dropFirst().dropLast(4)) : nil }
    if let end { names.append(end) }
    let index = (end == nil ? nodes[place].endpoint : nodes[place].rest) ?? endpoints.count
    if index == endpoints.count {
      endpoints.append(Endpoint(pattern: "/" + components.joined(separator: "/"), names: names))
      if end == nil { nodes[place].endpoint = index } else { nodes[place].rest = index }
    }
    precondition(!endpoints[index].methods.contains(method), "\(method) \(pattern) is given twice")
    endpoints[index].methods.append(method)
    endpoints[index].routes.append(route)
  }

  /// Adds a node, and has `link` tell its parent.
  private mutating func grow(_ link: (inout [Node], Int) -> Void) -> Int {
    nodes.append(Node())
    link(&nodes, nodes.count - 1)
    return nodes.count - 1
  }

  func find(_ method: HTTPRequest.Method, _ target: RequestTarget) -> RouteTable<Int>.Match {
    var open: [Range<Int>] = []
    guard let index = descend(from: 0, target, at: 0, &open) else {
      return HTTPRequest.Method.known.contains(method) ? .unknownPath : .unknownMethod
    }
    if let route = endpoints[index].methods.firstIndex(of: method)
      ?? (answersHead && method == .head ? endpoints[index].methods.firstIndex(of: .get) : nil)
    {
      return .found(
        endpoints[index].routes[route], pattern: endpoints[index].pattern,
        PathParameters(endpoints[index].names, open, in: target))
    }
    guard HTTPRequest.Method.known.contains(method) else { return .unknownMethod }
    var methods = endpoints[index].methods
    if answersHead, methods.contains(.get) { methods.append(.head) }
    return .otherMethods(methods)
  }

  /// Returns the endpoint of the rest of a path that begins at a byte.
  private func descend(from place: Int, _ target: RequestTarget, at start: Int, _ open: inout [Range<Int>]) -> Int? {
    let bytes = target.text.utf8.span
    var start = start
    while start < target.pathLength, bytes[start] == UInt8(ascii: "/") { start += 1 }
    guard start < target.pathLength else { return nodes[place].endpoint }
    var end = start
    while end < target.pathLength, bytes[end] != UInt8(ascii: "/") { end += 1 }
    for literal in nodes[place].literals where isEqual(bytes.extracting(start..<end), literal.text) {
      if let found = descend(from: literal.node, target, at: end, &open) { return found }
    }
    if let next = nodes[place].open {
      open.append(start..<end)
      if let found = descend(from: next, target, at: end, &open) { return found }
      open.removeLast()
    }
    if nodes[place].rest != nil { open.append(start..<target.pathLength) }
    return nodes[place].rest
  }

  private func isEqual(_ component: Span<UInt8>, _ text: Range<Int>) -> Bool {
    guard component.count == text.count else { return false }
    for index in component.indices where component[index] != texts[text.lowerBound + index] { return false }
    return true
  }
}

extension HTTPRequest.Method {
  /// The methods of RFC 9110 and RFC 5789, and QUERY, which is being standardised.
  fileprivate static let known = Set(
    [.get, .head, .post, .put, .delete, .connect, .options, .trace, .patch]
      + [HTTPRequest.Method("QUERY")].compactMap { $0 })
}

/// What a path has in place of the open components of a pattern, escapes as they were sent.
package struct PathParameters: Sendable {
  private var names: [String] = []
  private var values: [Substring] = []

  package init() {}

  init(_ names: [String], _ places: [Range<Int>], in target: RequestTarget) {
    guard !names.isEmpty else { return }
    self.names = names
    let bytes = target.text.utf8
    values = places.map { place in
      target.text[
        bytes.index(
          bytes.startIndex, offsetBy: place.lowerBound)..<bytes.index(
            bytes.startIndex, offsetBy: place.upperBound)]
    }
  }

  package subscript(name: String) -> Substring? { names.firstIndex(of: name).map { values[$0] } }
}
