import FanfareCore
import Foundation
import Testing
import Yams

/// Holds the codec to the AsyncAPI document that other programs are written against: in its schemas here every object is closed, so a member
/// that the codec writes and the document does not know is found too.
@Suite struct RecordSchemaTests {
  @Test(arguments: CodecTests.requests)
  func sendsAreAsDocumented(request: SendRequest) throws {
    #expect(try complaints(about: request.encoded(), schema: "SendEvent") == [])
  }

  @Test func statusesAreAsDocumented() throws {
    let device = DeviceResult(registration: .random(), platform: .wns, outcome: .failed, reason: "x", status: 500, attempts: 2)
    for parts in [1, 2] {
      let status = StatusRecord(
        send: .random(), hub: .default, parts: parts, attempt: parts > 1 ? .random() : nil, state: .settled, sender: "zoë",
        audience: .device(.fcm, handle: "t"), acceptedAt: CodecTests.time, settledAt: CodecTests.time, devices: [device],
        traceparent: "00-x")
      #expect(try complaints(about: status.encoded(), schema: "StatusEvent") == [])
    }
  }

  @Test func deadLettersAreAsDocumented() throws {
    for value in [Array("{}".utf8), [0xFF]] {
      let letter = DeadLetter(
        reason: .tooLarge, detail: "x", origin: .init(topic: "t", partition: 0, offset: 0), at: CodecTests.time, key: value,
        value: value)
      #expect(try complaints(about: letter.encoded(), schema: "DeadLetterEvent") == [])
    }
  }

  @Test func theDocumentNamesEveryWord() throws {
    let schemas = try schemas()
    func words(_ path: String...) -> [String]? {
      var node: Any? = schemas
      for step in path { node = (node as? [String: Any])?[step] }
      return (node as? [Any])?.map { "\($0)" }
    }
    #expect(words("Platform", "enum") == Platform.allCases.map(\.rawValue))
    #expect(words("Status", "properties", "state", "enum") == StatusRecord.State.allCases.map(\.rawValue))
    #expect(words("DeviceResult", "properties", "outcome", "enum") == DeviceResult.Outcome.allCases.map(\.rawValue))
    #expect(
      words("DeadLetterEvent", "properties", "data", "properties", "reason", "enum") == DeadLetter.Reason.allCases.map(\.rawValue)
    )
  }

  @Test func aBrokenRecordIsFound() throws {
    let record = #"{"specversion":"1.0","id":"x","type":"fanfare.send.v1","data":{"to":{"user":1},"ttl":-1,"extra":0}}"#
    let found = try complaints(about: Array(record.utf8), schema: "SendEvent")
    #expect(
      found.sorted() == [
        "data.extra is unknown", "data.to.user is no string", "data.ttl is out of range", "id is no uuid", "source is missing",
      ])
  }

  // A checker for as much of JSON Schema as the document uses.

  private func schemas() throws -> [String: Any] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "deploy/asyncapi.yaml"), encoding: .utf8)
    let document = try Yams.load(yaml: text) as? [String: Any]
    let components = document?["components"] as? [String: Any]
    return try #require(components?["schemas"] as? [String: Any])
  }

  private func complaints(about record: [UInt8], schema: String) throws -> [String] {
    let schemas = try schemas()
    let value = try JSONSerialization.jsonObject(with: Data(record))
    return check(value, try #require(schemas[schema] as? [String: Any]), at: "", schemas)
  }

  private func check(_ value: Any, _ schema: [String: Any], at path: String, _ schemas: [String: Any]) -> [String] {
    if let reference = schema["$ref"] as? String {
      let name = reference.split(separator: "/").last.map(String.init) ?? ""
      return (schemas[name] as? [String: Any]).map { check(value, $0, at: path, schemas) } ?? ["\(path) refers to nothing"]
    }
    let expected = schema["type"] as? String ?? ""
    switch (expected, value) {
    case ("object", let object as [String: Any]): return checkObject(object, schema, at: path, schemas)
    case ("array", let array as [Any]):
      let items = schema["items"] as? [String: Any] ?? [:]
      return array.enumerated().flatMap { check($1, items, at: "\(path)[\($0)]", schemas) }
    case ("string", let text as String):
      if let words = schema["enum"] as? [Any], !words.contains(where: { "\($0)" == text }) { return ["\(path) is no known word"] }
      if schema["format"] as? String == "uuid", UUID(uuidString: text) == nil { return ["\(path) is no uuid"] }
      if schema["format"] as? String == "date-time", UnixTime(text) == nil { return ["\(path) is no date-time"] }
      let tooLong = (schema["maxLength"] as? Int).map { text.unicodeScalars.count > $0 } ?? false
      let tooShort = (schema["minLength"] as? Int).map { text.unicodeScalars.count < $0 } ?? false
      return tooLong || tooShort ? ["\(path) is too long or too short"] : []
    case ("integer", let number as NSNumber):
      let isBelow = (schema["minimum"] as? Int).map { number.intValue < $0 } ?? false
      let isAbove = (schema["maximum"] as? Int).map { number.intValue > $0 } ?? false
      return isBelow || isAbove ? ["\(path) is out of range"] : []
    default: return ["\(path) is no \(expected)"]
    }
  }

  private func checkObject(_ object: [String: Any], _ schema: [String: Any], at path: String, _ schemas: [String: Any])
    -> [String]
  {
    let prefix = path.isEmpty ? "" : path + "."
    // An object that the document leaves open: a payload in a push service's own form.
    guard schema["properties"] != nil || schema["additionalProperties"] != nil else { return [] }
    let properties = schema["properties"] as? [String: Any] ?? [:]
    var found = (schema["required"] as? [String] ?? []).filter { object[$0] == nil }.map { "\(prefix)\($0) is missing" }
    if let minimum = schema["minProperties"] as? Int, object.count < minimum { found.append("\(path) has too few members") }
    if let maximum = schema["maxProperties"] as? Int, object.count > maximum { found.append("\(path) has too many members") }
    for (key, member) in object {
      if let known = (properties[key] ?? schema["additionalProperties"]) as? [String: Any] {
        found += check(member, known, at: prefix + key, schemas)
      } else {
        found.append("\(prefix)\(key) is unknown")
      }
    }
    return found
  }
}
