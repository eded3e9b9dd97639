import FanfareCore
import NIOHTTP1
import Testing

/// A complete answer of the front end.
struct Reply {
  let status: Int
  let headers: HTTPHeaders
  let body: [UInt8]

  var text: String { String(decoding: body, as: UTF8.self) }
  var json: JSON { get throws { try JSON(body) } }
  /// The `code` of a problem document.
  var code: String? { (try? JSON(body))?["code"]?.text }
  /// The `detail` of a problem document.
  var detail: String { (try? JSON(body))?["detail"]?.text ?? "" }

  /// The first value of a header field.
  subscript(_ name: String) -> String? { headers.first(name: name) }

  /// The id in `{"id":…}`.
  func sendID() throws -> SendID { try #require(try json["id"]?.text.flatMap { SendID($0) }) }

  /// Expects a complete problem document, and the header fields that its status requires.
  func expectProblem(
    _ status: Int, _ code: String, naming field: String? = nil, hasNext: Bool = false,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    guard self.status == status else {
      Issue.record("\(self.status) instead of \(status): \(text)", sourceLocation: sourceLocation)
      return
    }
    #expect(self["Content-Type"] == "application/problem+json", sourceLocation: sourceLocation)
    guard let document = try? JSON(body), case .object(let members) = document else {
      Issue.record("not a JSON object: \(text)", sourceLocation: sourceLocation)
      return
    }
    var keys: Set = ["type", "title", "status", "detail", "code", "requestId"]
    if code == "overQuota" || code == "tooManyFailures" { keys.insert("quota") }
    if hasNext { keys.insert("next") }
    #expect(Set(members.keys) == keys, sourceLocation: sourceLocation)
    #expect(members["code"] == .string(code), sourceLocation: sourceLocation)
    #expect(members["type"] == .string("urn:fanfare:problem:\(code)"), sourceLocation: sourceLocation)
    #expect(members["status"] == .number(Double(status)), sourceLocation: sourceLocation)
    #expect(members["title"]?.text?.isEmpty == false, sourceLocation: sourceLocation)
    #expect(members["requestId"]?.text != nil, sourceLocation: sourceLocation)
    #expect(members["requestId"]?.text == self["X-Request-Id"], sourceLocation: sourceLocation)
    if let field { #expect(detail.contains(field), "\(detail)", sourceLocation: sourceLocation) }
    #expect((self["WWW-Authenticate"] != nil) == (status == 401), sourceLocation: sourceLocation)
    #expect((self["Allow"] != nil) == (status == 405), sourceLocation: sourceLocation)
    #expect(
      (self["Retry-After"].flatMap { Int($0) } != nil) == [429, 503].contains(status), sourceLocation: sourceLocation)
  }
}
