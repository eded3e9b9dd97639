import AsyncHTTPClient
import Foundation
import FoundationXML
import NIOCore
import NIOHTTP1

@testable import fanfare_dev

/// A client of one server over HTTP, like `curl`.
struct Caller: Sendable {
  /// The response of the server.
  struct Answer: Sendable {
    let status: Int
    let headers: [String: String]
    let body: Data

    /// The body as text.
    var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as a JSON object.
    var json: [String: Any] {
      get throws { try JSONSerialization.jsonObject(with: body) as? [String: Any] ?? [:] }
    }
  }

  /// Scheme, host and port.
  let base: String

  /// Sends a GET request, without credentials unless `user` is given.
  func get(_ path: String, user: String? = nil) async throws -> Answer { try await call("GET", path, user: user) }

  /// Sends a request, as `user` of the demo authenticator if given: the password is the name.
  func call(
    _ method: String, _ path: String, user: String? = nil, body: String? = nil, type: String = "application/json",
    headers: [(String, String)] = []
  ) async throws -> Answer {
    var request = HTTPClientRequest(url: base + path)
    request.method = .init(rawValue: method)
    if let user {
      request.headers.add(name: "authorization", value: "Basic " + Data("\(user):\(user)".utf8).base64EncodedString())
    }
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    if let body {
      request.headers.add(name: "content-type", value: type)
      request.body = .bytes(ByteBuffer(string: body))
    }
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
    let answer = try await response.body.collect(upTo: 64 << 20)
    return Answer(
      status: Int(response.status.code),
      headers: Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first },
      body: Data(answer.readableBytesView))
  }
}

/// Runs a test in a new directory and removes the directory, also after a failure.
///
/// Set `FANFARE_TEST_KEEP` to keep the directory with the logs of the processes.
func withDirectory<Value>(_ name: String, _ body: (URL) async throws -> Value) async throws -> Value {
  let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(name)-\(UUID())")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  let result: Result<Value, any Error>
  do { result = .success(try await body(directory)) } catch { result = .failure(error) }
  if ProcessInfo.processInfo.environment["FANFARE_TEST_KEEP"] == nil {
    try FileManager.default.removeItem(at: directory)
  }
  return try result.get()
}

/// Polls until `condition` is true: a change of state in another process gives no signal to wait for.
func eventually(
  within limit: Duration = .seconds(60), _ what: String, _ condition: @escaping @Sendable () async throws -> Bool
) async throws {
  try await withTimeLimit(limit, what) {
    while try await !condition() { try await Task.sleep(for: .milliseconds(20)) }
  }
}

/// The text that a toast of the template `ToastText01` shows, read by an XML parser.
final class ToastText: NSObject, XMLParserDelegate {
  private(set) var text = ""
  private var isInText = false
  private var template: String?

  /// Throws unless the XML is well-formed and a `ToastText01`.
  init(_ xml: String) throws {
    super.init()
    let parser = XMLParser(data: Data(xml.utf8))
    parser.delegate = self
    guard parser.parse(), template == "ToastText01" else { throw CocoaError(.propertyListReadCorrupt) }
  }

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
    attributes: [String: String]
  ) {
    if name == "binding" { template = attributes["template"] }
    isInText = name == "text" && attributes["id"] == "1"
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) {
    if isInText { text += string }
  }

  func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
    isInText = false
  }
}
