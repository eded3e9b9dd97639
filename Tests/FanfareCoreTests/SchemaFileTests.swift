import FanfareCore
import Foundation
import Support
import Testing

@testable import Hooks

/// The descriptions of a send in openapi.json and asyncapi.yaml; the JSON Schemas in `deploy/schemas`, for programs that
/// do not read AsyncAPI; and the events of hooks.
@Suite struct SchemaFileTests {
  private static let files = [
    "send": "SendEvent", "status": "StatusEvent", "segment": "SegmentEvent", "retry": "RetryEvent",
    "dead-letter": "DeadLetterEvent", "outcome": "OutcomeEvent", "pulse": "PulseEvent",
  ]
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  private static let directory = root.appending(path: "deploy/schemas")

  /// Expects the lines indented below the last of some headings in a file to be the members' schemas.
  /// `FANFARE_WRITE_GOLDEN=1` writes them.
  private static func expectMembers(
    in path: String, below headings: [String], of members: [SendMember], name: (String) -> String, separator: String
  ) throws {
    let url = root.appending(path: path)
    var lines = try String(contentsOf: url, encoding: .utf8).components(separatedBy: "\n")
    let start = try headings.reduce(0) { start, heading in
      try #require(lines[start...].firstIndex(of: heading)) + 1
    }
    let depth = headings.last?.prefix { $0 == " " } ?? ""
    let end = lines[start...].firstIndex { !$0.hasPrefix(depth + " ") } ?? lines.count
    let present = members.enumerated().flatMap { index, member in
      let end = "}" + (index < members.count - 1 ? separator : "")
      let schema = member.schema.split(separator: "\n").map(String.init)
      return schema.count == 1
        ? ["\(depth)  \(name(member.name)): {\(schema[0])\(end)"]
        : ["\(depth)  \(name(member.name)): {"] + schema.dropLast().map { "\(depth)    \($0)" }
          + ["\(depth)    \(schema[schema.count - 1])\(end)"]
    }
    #expect(GoldenFile.isUpdating || Array(lines[start..<end]) == present, "\(path)")
    guard GoldenFile.isUpdating else { return }
    lines.replaceSubrange(start..<end, with: present)
    try Data(lines.joined(separator: "\n").utf8).write(to: url, options: .atomic)
  }

  /// `FANFARE_WRITE_GOLDEN=1` makes the files anew.
  @Test func filesEqualTheSchemasOfTheDocument() throws {
    try Self.expectMembers(
      in: "Sources/FrontEnd/Description/openapi.json", below: [#"      "Send": {"#, #"        "properties": {"#],
      of: SendFields.members.filter { $0.place != .records }, name: { "\"\($0)\"" }, separator: ",")
    try Self.expectMembers(
      in: "deploy/asyncapi.yaml", below: ["    Send:", "      properties:"],
      of: SendFields.members.filter { $0.place != .bodies }, name: { $0 }, separator: "")
    let checker = try SchemaChecker()
    for (file, name) in Self.files {
      let url = Self.directory.appending(path: "\(file).json")
      let schema = try bundle(checker.schemas, name, file: file)
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
  private func bundle(_ schemas: [String: Any], _ name: String, file: String) throws -> [String: Any] {
    var (used, definitions): ([String], [String: Any]) = ([], [:])
    var schema = try #require(rewritten(schemas[name] as Any, &used) as? [String: Any])
    while let next = used.popLast() {
      if definitions[next] == nil { definitions[next] = rewritten(try #require(schemas[next]), &used) }
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
    let checker = try SchemaChecker()
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
