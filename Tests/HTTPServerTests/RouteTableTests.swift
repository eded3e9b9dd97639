import HTTPTypes
import Testing

@testable import HTTPServer

/// The route of a request, and the answer for a path without one.
struct RouteTableTests {
  private let table: RouteTable<Int>

  init() {
    var table = RouteTable<Int>()
    table.add(.get, "api/sends", 1)
    table.add(.post, "api/sends", 2)
    table.add(.get, "api/sends/{id}", 3)
    table.add(.post, "api/sends/batch", 4)
    table.add(.post, "api/sends/{id}/pause", 5)
    table.add(.get, "hubs/{hub}/api/sends/{id}", 6)
    table.add(.get, "devices/{platform}/{handle...}", 7)
    self.table = table
  }

  private func find(_ method: HTTPRequest.Method, _ target: String) -> String {
    switch table.find(method, RequestTarget(target)) {
    case .found(let route, let pattern, let parameters):
      let values = ["hub", "id", "platform", "handle"].compactMap { name in parameters[name].map { "\(name)=\($0)" } }
      return ([String(route), pattern] + values).joined(separator: " ")
    case .otherMethods(let methods): return methods.map(\.rawValue).sorted().joined(separator: ", ")
    case .unknownPath: return "unknown path"
    case .unknownMethod: return "unknown method"
    }
  }

  @Test(arguments: [
    ("/api/sends", "1 /api/sends"), ("/api/sends?a=/b", "1 /api/sends"), ("//api//sends/", "1 /api/sends"),
    ("/api/sends/x%2Fy", "3 /api/sends/{id} id=x%2Fy"), ("/API/sends", "unknown path"), ("/api", "unknown path"),
    ("/", "unknown path"), ("", "unknown path"), ("*", "unknown path"), ("/api/sends/x/pause/y", "unknown path"),
    ("/hubs/shop/api/sends/7", "6 /hubs/{hub}/api/sends/{id} hub=shop id=7"),
    ("/devices/wns/a/b?c", "7 /devices/{platform}/{handle...} platform=wns handle=a/b"),
    ("/devices/wns", "unknown path"),
  ])
  func pathsLeadToRoutes(target: String, expected: String) {
    #expect(find(.get, target) == expected)
  }

  @Test func literalsComeBeforeOpenComponents() {
    #expect(find(.post, "/api/sends/batch") == "4 /api/sends/batch")
    #expect(find(.get, "/api/sends/batch") == "POST", "it is not the report of a send")
    #expect(find(.post, "/api/sends/batch/pause") == "5 /api/sends/{id}/pause id=batch")
  }

  @Test func otherMethodsOfAPathAreKnown() {
    #expect(find(.put, "/api/sends") == "GET, HEAD, POST")
    #expect(find(.head, "/api/sends") == "1 /api/sends")
    #expect(find(.head, "/api/sends/x/pause") == "POST")
    #expect(HTTPRequest.Method("BREW").map { find($0, "/api/sends") } == "unknown method")
    #expect(HTTPRequest.Method("BREW").map { find($0, "/nothing") } == "unknown method")
    #expect(HTTPRequest.Method("QUERY").map { find($0, "/nothing") } == "unknown path")
  }

  @Test func queryEndsAtAFragment() {
    let target = RequestTarget("/a?b=c?d#e")
    #expect(target.path == "/a" && target.query == "b=c?d")
    #expect(RequestTarget("/a#b").path == "/a#b" && RequestTarget("/a#b").query == nil)
    #expect(RequestTarget("?").path == "/" && RequestTarget("?").query == "")
  }
}
