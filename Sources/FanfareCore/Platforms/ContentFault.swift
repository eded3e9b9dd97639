/// Why a push service would refuse a content, whatever the device.
///
/// The front end refuses such a send, and the senders end its pushes with `outcome`: a backend that writes to Kafka has
/// passed no front end. Names the member, never its value.
package struct ContentFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// The wrong member of the send as a dotted path (`native.headers.apns-priority`).
  package let field: String
  /// The rest of a sentence that begins with the field.
  package let problem: String
  /// The outcome that every push has.
  package let outcome: PushOutcome

  package init(_ field: String, _ problem: String, _ outcome: PushOutcome) {
    (self.field, self.problem, self.outcome) = (field, problem, outcome)
  }

  /// An error in the payload that is the member `field`.
  package init(_ error: JSONError, in field: String) {
    self.init(error.field.isEmpty ? field : "\(field).\(error.field)", error.problem, .badPayload)
  }

  package static func tooLarge(_ field: String, limit: Int, of service: String) -> ContentFault {
    ContentFault(field, "must have at most \(limit) bytes, the limit of \(service)", .payloadTooLarge)
  }

  package static func empty(_ field: String) -> ContentFault {
    ContentFault(field, "must show something or have data", .payloadEmpty)
  }

  package static func reserved(_ field: String, by service: String) -> ContentFault {
    ContentFault(field, "is a key that \(service) reserves", .reservedDataKey)
  }

  package static func badHeader(_ name: String, _ problem: String) -> ContentFault {
    ContentFault("native.headers.\(name)", problem, .badHeader)
  }

  package var description: String { "\(field) \(problem)" }
}

/// The outcomes of content that a service would refuse. Their reasons are Fanfare's own words.
extension PushOutcome {
  /// The payload is larger than the service allows.
  package static let payloadTooLarge = PushOutcome(.rejected, reason: "PayloadTooLarge")
  /// The send has neither anything to show nor data.
  package static let payloadEmpty = PushOutcome(.rejected, reason: "PayloadEmpty")
  /// The native payload is no JSON object, or has members of the wrong type.
  package static let badPayload = PushOutcome(.rejected, reason: "BadPayload")
  /// The native payload names a device, topic or condition, which is for the send's audience to decide.
  package static let targetInPayload = PushOutcome(.rejected, reason: "TargetInPayload")
  /// A data key has a meaning of its own for the service.
  package static let reservedDataKey = PushOutcome(.rejected, reason: "ReservedDataKey")
  /// The collapse key does not fit a header field of at most 64 bytes.
  package static let badCollapseID = PushOutcome(.rejected, reason: "BadCollapseId")
  /// A header field that the caller gave has a value that the service would refuse.
  package static let badHeader = PushOutcome(.rejected, reason: "BadHeader")
}

extension SendRequest {
  /// Throws if the service of a platform that the send may go to would refuse its content for every device.
  ///
  /// Linear in the content, and bounded: a payload above its service's limit is not parsed. A send that names a
  /// template is not checked, because its payload depends on the values of each device; see `ContentTemplate.check()`.
  package func checkContent() throws(ContentFault) {
    let content = content
    if case .some = content.template { return }
    // Nearly all sends.
    if content.isPortable, let message = content.message, message.isSurelyAccepted,
      collapseKey.map({ key in Platform.allCases.allSatisfy { $0.vocabulary.accepts(collapseKey: key) } }) ?? true
    {
      return
    }
    var platforms = coveredPlatforms
    if case .device(let platform, _) = audience { platforms.formIntersection(PlatformSet(platform)) }
    for platform in platforms.platforms {
      do throws(ContentFault) {
        try platform.vocabulary.check(content, collapseKey: collapseKey)
      } catch  where content.hasNothing(for: platform, error) && platforms != PlatformSet(platform) {
        // Of a sound alone the others show something.
      }
    }
  }
}

extension Content {
  /// Whether there is nothing besides a message.
  fileprivate var isPortable: Bool { native.isEmpty && headers.isEmpty }

  /// Whether the fault is that the message has nothing that the platform shows.
  func hasNothing(for platform: Platform, _ fault: ContentFault) -> Bool {
    fault.outcome == .payloadEmpty && native[platform] == nil
  }
}

extension Message {
  /// Whether no service would refuse the message; false if that needs a closer look.
  ///
  /// A character that XML or JSON escapes becomes at most 7 bytes of a payload (a quotation mark in JSON in XML), any
  /// other character stays as it is, and each entry of the data adds 26 bytes of syntax.
  fileprivate var isSurelyAccepted: Bool {
    guard title != nil || body != nil || badge != nil || !data.isEmpty else { return false }
    let room = Self.leastLimit - 150 - 26 * data.count
    var size = (title?.utf8.count ?? 0) + (body?.utf8.count ?? 0) + (sound?.utf8.count ?? 0)
    for (key, value) in data {
      if Platform.allCases.contains(where: { $0.vocabulary.reserves(dataKey: key) }) { return false }
      size += key.utf8.count + value.utf8.count
    }
    if 7 * size <= room { return true }
    guard size <= room else { return false }
    var escapes = (title?.escapeCount ?? 0) + (body?.escapeCount ?? 0) + (sound?.escapeCount ?? 0)
    for (key, value) in data { escapes += key.escapeCount + value.escapeCount }
    return size + 6 * escapes <= room
  }

  private static let leastLimit = Platform.allCases.map { $0.vocabulary.messageLimit }.min() ?? 0

  /// The data sorted by key, so that a message always renders to the same bytes.
  package var sortedData: [(key: String, value: String)] {
    data.count > 1 ? data.sorted { $0.key < $1.key } : Array(data)
  }
}

extension String {
  /// The number of characters that are escaped in JSON or XML.
  fileprivate var escapeCount: Int {
    // A loop without branches is vectorized.
    let bytes = utf8Span.span
    var count: UInt32 = 0
    for index in bytes.indices {
      let byte = bytes[index]
      var isEscaped: UInt8 = byte < 0x20 ? 1 : 0
      isEscaped |= byte == UInt8(ascii: "\"") ? 1 : 0
      isEscaped |= byte == UInt8(ascii: "\\") ? 1 : 0
      isEscaped |= byte == UInt8(ascii: "&") ? 1 : 0
      isEscaped |= byte == UInt8(ascii: "'") ? 1 : 0
      isEscaped |= byte == UInt8(ascii: "<") ? 1 : 0
      isEscaped |= byte == UInt8(ascii: ">") ? 1 : 0
      isEscaped |= byte == 0x7F ? 1 : 0
      count &+= UInt32(isEscaped)
    }
    return Int(count)
  }
}
