import FanfareCore
import Foundation
import Support
import Testing

@testable import Hooks

/// The JSON Schemas in `deploy/schemas`, for programs that do not read AsyncAPI, and the events of hooks.
@Suite struct SchemaFileTests {
  private static let files = [
    "send": "SendEvent", "status": "StatusEvent", "segment": "SegmentEvent", "retry": "RetryEvent",
    "dead-letter": "DeadLetterEvent", "outcome": "OutcomeEvent", "pulse": "PulseEvent",
  ]
  private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "deploy/schemas")

  private let checker: SchemaChecker

  init() throws {
    checker = try SchemaChecker()
  }

  /// `FANFARE_WRITE_GOLDEN=1` makes the files anew.
  @Test func filesEqualTheSchemasOfTheDocument() throws {
    for (file, name) in Self.files {
      let (url, schema) = (Self.directory.appending(path: "\(file).json"), try bundle(name, file: file))
      if GoldenFile.isUpdating {
        let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try (JSONSerialization.data(withJSONObject: schema, options: options) + Data("\n".utf8)).write(to: url)
      }
      let found = try JSONSerialization.jsonObject(with: Data(contentsOf: url)) as? NSDictionary
      #expect(found == schema as NSDictionary, "\(file).json")
    }
    let all = try FileManager.default.contentsOfDirectory(atPath: Self.directory.path)
    #expect(Set(all) == Set(Self.files.keys.map { "\($0).json" }))
  }

  /// The schema with all others that it refers to.
  private func bundle(_ name: String, file: String) throws -> [String: Any] {
    var (used, definitions): ([String], [String: Any]) = ([], [:])
    var schema = try #require(rewritten(checker.schemas[name] as Any, &used) as? [String: Any])
    while let next = used.popLast() {
      if definitions[next] == nil { definitions[next] = rewritten(try #require(checker.schemas[next]), &used) }
    }
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$id"] = "urn:fanfare:schema:\(file)"
    schema["title"] = "Fanfare: \(file)"
    if !definitions.isEmpty { schema["$defs"] = definitions }
    return schema
  }

  private func rewritten(_ value: Any, _ used: inout [String]) -> Any {
    if let list = value as? [Any] { return list.map { rewritten($0, &used) } }
    guard var members = value as? [String: Any] else { return value }
    for (key, member) in members {
      if key == "$ref", let name = (member as? String)?.split(separator: "/").last.map(String.init) {
        used.append(name)
        members[key] = "#/$defs/\(name)"
      } else {
        members[key] = rewritten(member, &used)
      }
    }
    return members
  }

  @Test func eventsOfHooksAreAsDocumented() throws {
    let device = DeviceResult(
      registration: .random(), platform: .wns, outcome: .failed, reason: "x", status: 500, attempts: 2)
    let many = Array(repeating: device, count: HookEvent.maximumDevices + 1)
    for (devices, span) in [([device], 1), (many, 1), ([], 3)] {
      let status = StatusRecord(
        send: .random(), hub: .default, part: 1, parts: 5, span: span, attempt: .random(), state: .settled,
        sender: "zoë", audience: .device(.fcm, handle: "t"), acceptedAt: CodecTests.time, settledAt: CodecTests.time,
        devices: devices, traceparent: "00-x", tracestate: "a=1")
      #expect(try checker.complaints(about: HookEvent(status).json, schema: "OutcomeEvent", .closed) == [])
    }
  }
}
