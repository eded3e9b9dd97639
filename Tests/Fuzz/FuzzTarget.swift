import FanfareCore
import FoundationEssentials

@testable import FrontEnd
@testable import Worker

/// What is fuzzed: every reader of bytes from outside, and the sums of what they read. `deploy/fuzz` runs each.
///
/// A run must end without a trap, and what is read must be written and read again as the same value.
enum FuzzTarget: String, CaseIterable {
  case json, tags, send, segment, status, retry, deadLetter, commit, http1Server, http2, http2Server, channel, values,
    jwt, template, content, pulse, ledger, quota

  private static let time = UnixTime(milliseconds: 1_795_248_000_123)

  func run(_ bytes: [UInt8]) {
    switch self {
    case .json: Self.readJSON(bytes)
    case .tags: Self.readTags(bytes)
    case .send:
      Self.same(bytes, { try SendRequest.decode($0, recordTime: Self.time) }) { $0.encoded() }
    case .segment:
      Self.same(bytes, { try SegmentRecord.decode($0, recordTime: Self.time) }) { $0.encoded(at: Self.time) }
    case .status: Self.same(bytes, { try StatusRecord.decode($0) }) { $0.encoded() }
    case .retry:
      _ = try? RetryRecord.wait(of: bytes[...], at: Self.time)
      // The encoding notes the time of writing, so only the rest is compared: a second encoding is the same as the
      // first.
      guard let record = try? RetryRecord.decode(bytes[...], recordTime: Self.time) else { return }
      let once = record.encoded(at: Self.time)
      guard once.count <= RetryRecord.maximumRecordSize else { return }
      guard let again = try? RetryRecord.decode(once[...], recordTime: Self.time) else {
        preconditionFailure("what was written cannot be read")
      }
      precondition(again.encoded(at: Self.time) == once)
    case .deadLetter: Self.same(bytes, { try DeadLetter.decode($0) }) { $0.encoded() }
    case .commit: Self.readCommit(bytes)
    case .http2: HTTP2Input.receive(bytes)
    case .http1Server: ServerInput.receiveHTTP1(bytes)
    case .http2Server: ServerInput.receiveHTTP2(bytes)
    case .channel:
      guard let uri = ChannelURI(String(decoding: bytes, as: UTF8.self)) else { return }
      precondition(uri.host == "notify.windows.com" || uri.host.hasSuffix(".notify.windows.com"))
      precondition(uri.pathAndQuery.hasPrefix("/") && uri.pathAndQuery.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
    case .values: Self.readValues(String(decoding: bytes, as: UTF8.self))
    case .jwt: Self.readToken(bytes)
    case .content: Self.checkContent(bytes)
    case .template: Self.renderTemplate(String(decoding: bytes, as: UTF8.self))
    case .pulse: Aggregation.showPulses(bytes)
    case .ledger: Aggregation.addStatusRecords(bytes)
    case .quota: Aggregation.useQuotas(bytes)
    }
  }

  /// Native payloads for every service, with the same text as header field and collapse key.
  private static func checkContent(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    _ = WNSPayload.kind(of: text)
    _ = try? FCMPayload(bytes)
    let names = Platform.allCases.flatMap { $0.vocabulary.headers }
    for name in names {
      var native = NativePayloads(.apns, .json(bytes))
      native[.wns] = .text(text)
      let content = Content(
        message: Message(body: text, data: [text: text]), native: native, headers: [name: text])
      let send = SendRequest(
        id: SendID(high: 0, low: 0), acceptedAt: time, audience: .everyone, content: content, collapseKey: text)
      try? send.checkContent()
    }
  }

  /// The first line is the value of every property, the rest the template. A rendered payload can be read.
  private static func renderTemplate(_ text: String) {
    let parts = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2 else { return }
    for syntax in [Template.Syntax.json, .xml, .text] {
      guard let template = try? Template(parts[1], syntax) else { continue }
      let properties = Dictionary(uniqueKeysWithValues: template.names.map { ($0, parts[0]) })
      // Only that it ends matters where the payload would be too large.
      guard let payload = try? template.render(TemplateValues(properties: properties), limit: 1 << 20) else { continue }
      let rendered = String(decoding: payload, as: UTF8.self)
      guard syntax != .text else { continue }
      // What was inserted is a string or a text, and so at most an expression for the next reader.
      do { _ = try Template(rendered, syntax) } catch {
        precondition(error.character != nil || rendered.utf8.count > Template.maximumLength, "a value left its place")
      }
    }
  }

  /// Decodes, encodes and decodes again.
  private static func same<Value: Equatable>(
    _ bytes: [UInt8], _ decode: (ArraySlice<UInt8>) throws -> Value, _ encode: (Value) -> [UInt8]
  ) {
    guard let value = try? decode(bytes[...]) else { return }
    let written = encode(value)
    // A record near the limit may be longer when it is written again.
    guard written.count <= max(bytes.count, 65_536) else { return }
    guard let again = try? decode(written[...]) else { preconditionFailure("what was written cannot be read") }
    // Some members are only read, so the second reading is compared with the third.
    guard let third = try? decode(encode(again)[...]) else { preconditionFailure("what was written cannot be read") }
    precondition(again == third, "what was read differs from what was written")
  }

  private static func readJSON(_ bytes: [UInt8]) {
    func read(_ reader: inout JSONReader) throws(JSONError) {
      switch try reader.nextKind() {
      case .object:
        try reader.readObject { (key, reader) throws(JSONError) in
          _ = key.text
          try read(&reader)
        }
      case .array: try reader.readArray { (reader) throws(JSONError) in try read(&reader) }
      case .string: _ = try reader.readString()
      case .number: _ = try reader.readRaw()
      case .boolean: _ = try reader.readBoolean()
      case .null: try reader.skipValue()
      }
    }
    let isTree: Bool
    do throws(JSONError) {
      var reader = try JSONReader(bytes[...])
      try read(&reader)
      try reader.finish()
      isTree = true
    } catch {
      isTree = false
    }
    let isSkipped: Bool
    do throws(JSONError) {
      var reader = try JSONReader(bytes[...])
      try reader.skipValue()
      try reader.finish()
      isSkipped = true
    } catch {
      isSkipped = false
    }
    // Strings with lone surrogates are grammatical, but no text.
    precondition(isSkipped || !isTree, "a document that can be read cannot be skipped")
  }

  private static func readTags(_ bytes: [UInt8]) {
    guard let expression = try? TagExpression(String(decoding: bytes, as: UTF8.self)) else { return }
    let text = expression.description
    guard text.utf8.count <= TagExpression.maximumLength else { return }
    guard let again = try? TagExpression(text) else { preconditionFailure("the canonical text cannot be read") }
    precondition(again == expression && expression.tags.count <= TagExpression.maximumPlaces)
    _ = expression.holds { $0.count % 2 == 0 }
  }

  private static func readCommit(_ bytes: [UInt8]) {
    let position = bytes.prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) } & .max
    let text = String(decoding: bytes.dropFirst(8), as: UTF8.self)
    // As it is, and behind a beginning that belongs to the position.
    for text in [text, "\(CommitMetadata.mark)cluster:\(position):\(text)"] {
      let settled = CommitMetadata(text, at: position, cluster: "cluster").settled
      var last = position
      for run in settled.ranges {
        precondition(run.lowerBound >= last && run.lowerBound < run.upperBound)
        last = run.upperBound
      }
    }
  }

  /// Reads a token, and the bytes as a header and as a payload: the first reader of those is base64.
  private static func readToken(_ bytes: [UInt8]) {
    let part = Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
      "=", with: "")
    for text in [String(decoding: bytes, as: UTF8.self), "\(part).e30.AA", "eyJhbGciOiJSUzI1NiJ9.\(part).AA"] {
      _ = Credentials("Bearer \(text)")
      guard let token = try? JSONWebToken(text) else { continue }
      precondition(text.utf8.count <= JSONWebToken.maximumSize)
      precondition(text.utf8.starts(with: token.signedBytes), "the signature covers other bytes than the token's")
      guard let identity = try? rules.identity(of: token.payload, hub: .default, at: time) else { continue }
      precondition(UserName.isValid(identity.user) && identity.expiresAt > time)
    }
  }

  private static let rules = TokenRules(issuer: "i", audiences: ["f"])

  private static func readValues(_ text: String) {
    if let time = UnixTime(text) { precondition(UnixTime(time.description) == time || time.description.isEmpty) }
    if let hub = HubName(text) { precondition(hub.rawValue == text) }
    if let id = SendID(text) { precondition(SendID(id.description) == id) }
    for platform in Platform.allCases {
      let handle = DeviceHandle.normalized(text, platform: platform)
      _ = DeviceHandle.problem(with: handle, platform: platform)
    }
  }
}
