/// The envelope of every topic record: a CloudEvent 1.0 in structured JSON mode.
package struct CloudEvent {
  /// The value of the record header `content-type`.
  package static let contentType = "application/cloudevents+json"

  /// The type of a record. An incompatible version of a record has a new type.
  enum RecordType: String {
    case send = "fanfare.send.v1"
    case status = "fanfare.status.v1"
    case deadLetter = "fanfare.dead-letter.v1"
    case retry = "fanfare.retry.v1"
    case segment = "fanfare.segment.v1"

    /// The members between a record's id and its time: its type, and the role that writes such
    /// records.
    ///
    /// One literal instead of members: a record is written for every push, and each append costs as much as its bytes.
    fileprivate var typeAndSource: StaticString {
      switch self {
      case .send: #"","type":"fanfare.send.v1","source":"/fanfare/api","time":"#
      case .status: #"","type":"fanfare.status.v1","source":"/fanfare/worker","time":"#
      case .retry: #"","type":"fanfare.retry.v1","source":"/fanfare/worker","time":"#
      case .segment: #"","type":"fanfare.segment.v1","source":"/fanfare/worker","time":"#
      case .deadLetter: #"","type":"fanfare.dead-letter.v1","source":"/fanfare/worker","time":"#
      }
    }
  }

  /// The id; nil if it is not a UUID.
  let id: SendID?
  let time: UnixTime?
  /// Whether the time was written without a fraction of a second.
  let isTimeWhole: Bool
  /// The attribute of CloudEvents' distributed tracing extension; nil if it is missing or malformed.
  let traceparent: String?
  /// The other attribute of that extension; nil if it is missing or malformed, or there is no `traceparent`.
  let tracestate: String?
}

// MARK: - Writing

extension CloudEvent {
  /// Writes a record. `id` appends the event's id, escaped; `data` writes the members of `data`.
  static func record(
    _ type: RecordType, time: UnixTime, capacity: Int, traceparent: String? = nil, tracestate: String? = nil,
    id: (inout [UInt8]) -> Void, data: (inout JSONWriter) -> Void
  ) -> [UInt8] {
    var json = JSONWriter(capacity: capacity)
    begin(&json, id: id)
    continueAfterID(type, time: time, &json)
    data(&json)
    end(&json, traceparent: traceparent, tracestate: tracestate)
    return json.bytes
  }

  /// Writes the beginning of a record up to its id.
  static func begin(_ json: inout JSONWriter, id: (inout [UInt8]) -> Void) {
    json.raw(#"{"specversion":"1.0","id":""#)
    json.append(id)
  }

  /// Writes the envelope's members after the id, and opens `data`.
  static func continueAfterID(_ type: RecordType, time: UnixTime, _ json: inout JSONWriter) {
    json.raw(type.typeAndSource)
    time.write(to: &json)
    json.raw(#","data":"#)
    json.open("{")
  }

  /// Appends `<send>/<part>`, or `<send>/<attempt>/<part>` for one of several parts: the event id
  /// of a work item.
  static func appendID(of send: SendID, attempt: DispatchID?, part: Int, to id: inout [UInt8]) {
    send.append(to: &id)
    id.append(UInt8(ascii: "/"))
    if let attempt {
      attempt.append(to: &id)
      id.append(UInt8(ascii: "/"))
    }
    id.appendJSON(part)
  }

  /// Closes `data` and the record. A trace context is written as the attributes of the distributed tracing extension.
  static func end(_ json: inout JSONWriter, traceparent: String?, tracestate: String?) {
    guard let traceparent else { return json.raw("}}") }
    json.close("}")
    json.member("traceparent", traceparent)
    json.member("tracestate", ifPresent: tracestate)
    json.raw("}")
  }
}

// MARK: - Reading

extension CloudEvent {
  /// Reads a record of the expected type.
  /// `read` reads its `data`, an object, and may be called more than once.
  ///
  /// If a member occurs several times, the last one counts. Throws `.unknownType` for any other type, `.tooLarge` for
  /// more than `maximumSize` bytes, and `.undecodable` for all other faults.
  static func read<Value>(
    _ record: ArraySlice<UInt8>, as expected: RecordType, maximumSize: Int,
    data read: (inout JSONReader) throws(JSONError) -> Value
  ) throws(RecordError) -> (event: CloudEvent, data: Value) {
    // A record above the limit of every type is rejected without being parsed.
    let limit = max(maximumSize, StatusRecord.maximumRecordSize)
    guard record.count <= limit else { throw tooLarge(limit) }
    guard !record.isEmpty else { throw RecordError(.undecodable, "the record is empty") }
    var (hasID, id, time, isTimeWhole): (Bool, SendID?, UnixTime?, Bool) = (false, nil, nil, false)
    var (traceparent, tracestate): (String?, String?)
    var (hasType, hasVersion): (Bool?, Bool) = (nil, false)
    var (data, unreadData): (Value?, ArraySlice<UInt8>?)
    do throws(JSONError) {
      var reader = try JSONReader(record)
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        case "id": (hasID, id) = try reader.readUTF8 { (!$0.isEmpty, SendID(utf8: $0)) }
        case "type": hasType = try reader.readUTF8 { $0.hasBytes(of: expected.rawValue) }
        case "specversion": hasVersion = try reader.readUTF8 { $0.hasBytes(of: "1.0") }
        case "data":
          // Read at once if the type is known to match. Otherwise, and if it is faulty, it is read again after the rest
          // of the envelope, whose errors come first.
          let start = reader.position
          if hasType == true, hasVersion, record.count <= maximumSize {
            do throws(JSONError) {
              data = try reader.readNested(read)
              unreadData = nil
              return
            } catch { reader.position = start }
          }
          unreadData = try reader.readUnchecked()
        case "time":
          // CloudEvents' JSON format: null is the same as a missing attribute.
          let isMissing = try reader.readNull()
          (time, isTimeWhole) =
            try isMissing
            ? (nil, false)
            : reader.readUTF8 { text in
              // A fraction begins behind `2026-11-21T08:00:00`.
              let time = UnixTime(utf8: text)
              return (time, time != nil && text[19] != UInt8(ascii: "."))
            }
          guard isMissing || time != nil else { throw reader.error("must be an RFC 3339 date-time") }
        case "traceparent":
          traceparent = try readText(&reader) { text in
            text.utf8.count <= 128 && TraceContext(traceparent: text) != nil ? text : nil
          }
        case "tracestate": tracestate = try readText(&reader, TraceContext.validState)
        default: try reader.skipValue()
        }
      }
      try reader.finish()
    } catch {
      // The size explains the failure better: the record may have been cut.
      guard record.count <= maximumSize else { throw tooLarge(maximumSize) }
      throw RecordError(.undecodable, error.field.isEmpty ? "the record \(error.problem)" : error.description)
    }
    guard hasVersion else { throw RecordError(.undecodable, "specversion must be \"1.0\"") }
    guard let hasType else { throw RecordError(.undecodable, "type is missing") }
    guard hasType else { throw RecordError(.unknownType, "type must be \"\(expected.rawValue)\"") }
    guard record.count <= maximumSize else { throw tooLarge(maximumSize) }
    guard hasID else { throw RecordError(.undecodable, "id is missing") }
    if let unreadData {
      var reader = JSONReader(validated: unreadData)
      do throws(JSONError) { data = try read(&reader) } catch { throw RecordError(inData: error) }
    }
    guard let data else { throw RecordError(.undecodable, "data is missing") }
    if traceparent == nil { tracestate = nil }
    let event = CloudEvent(
      id: id, time: time, isTimeWhole: isTimeWhole, traceparent: traceparent, tracestate: tracestate)
    return (event, data)
  }

  /// Reads an optional attribute; nil if it is no string, or `accept` drops it.
  private static func readText(
    _ reader: inout JSONReader, _ accept: (String) -> String?
  ) throws(JSONError) -> String? {
    guard try reader.nextKind() == .string else {
      try reader.skipValue()
      return nil
    }
    return accept(try reader.readString())
  }

  private static func tooLarge(_ maximumSize: Int) -> RecordError {
    RecordError(.tooLarge, "the record has more than \(maximumSize) bytes")
  }
}

/// Why a topic record cannot be used. Names the field, never its value.
package struct RecordError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The reason that the dead letter gives.
  package let reason: DeadLetter.Reason
  /// The field and its problem.
  package let detail: String

  package init(_ reason: DeadLetter.Reason, _ detail: String) {
    self.reason = reason
    self.detail = detail
  }

  /// The record's `data` differs from the expected form.
  init(inData error: JSONError) {
    self.init(.undecodable, error.field.isEmpty ? "data \(error.problem)" : "data.\(error.description)")
  }

  package var description: String { detail }
}
