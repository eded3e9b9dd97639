extension SendRequest {
  /// The most bytes in a record of the sends topic: a request body at its limit, with room for
  /// envelope and escapes.
  package static let maximumRecordSize = 512 * 1024
  /// The most bytes of such a send after it has been decoded and encoded again.
  ///
  /// An escape of two characters may have become one of six, and default members and `replay` are added.
  package static let maximumRewrittenSize = maximumRecordSize * 3 + 2048
  /// The longest time to live in seconds: the longest that every service accepts (FCM's four
  /// weeks).
  package static let maximumTimeToLive = 2_419_200
  /// The most bytes of UTF-8 in a collapse key (APNs' limit).
  package static let maximumCollapseKeyLength = 64
  /// The highest rate that a caller may set for a broadcast, in pushes per second.
  package static let greatestMaximumPerSecond = 10_000_000

  /// A capacity that is enough for nearly all records.
  static let usualRecordSize = 512

  /// The record of the sends topic.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: Self.usualRecordSize)
    CloudEvent.begin(&json) { id.append(to: &$0) }
    writeOrigin(to: &json)
    writeContent(to: &json)
    return json.bytes
  }

  /// Writes the part after the id that is equal for all sends of one caller at one moment.
  fileprivate func writeOrigin(to json: inout JSONWriter) {
    CloudEvent.continueAfterID(.send, time: acceptedAt, &json)
    writeOriginMembers(to: &json)
  }

  /// Writes the rest of the record.
  fileprivate func writeContent(to json: inout JSONWriter) {
    writeMembers(to: &json)
    CloudEvent.end(&json, traceparent: traceparent, tracestate: tracestate)
  }

  /// Reads a record of the sends topic.
  ///
  /// Unknown members of `data` are kept, others are ignored. The attribute `traceparent` of CloudEvents' distributed
  /// tracing extension counts if `data` has none; `tracestate` counts with it. `recordTime`, the log's timestamp of the
  /// record, is used if the event has no time. A replay may have up to `maximumRewrittenSize` bytes, because it was
  /// decoded and encoded again.
  package static func decode(
    _ value: ArraySlice<UInt8>, recordTime: UnixTime, maximumSize: Int = maximumRecordSize
  ) throws(RecordError) -> SendRequest {
    do throws(RecordError) {
      return try read(value, recordTime: recordTime, maximumSize: maximumSize).send
    } catch  where error.reason == .tooLarge && value.count <= maximumRewrittenSize {
      // Only a replay may be so large. Any other record is rejected for its size, even if it has other errors.
      guard let send = try? read(value, recordTime: recordTime, maximumSize: maximumRewrittenSize).send,
        send.replay != nil
      else {
        throw error
      }
      return send
    }
  }

  /// Reads a record of a hub's ingress topic: without a hub of its own it belongs to `hub`.
  ///
  /// - Returns: The send; whether the record names its hub, which may be another one; and whether it names its time.
  package static func decode(
    _ value: ArraySlice<UInt8>, recordTime: UnixTime, in hub: HubName
  ) throws(RecordError) -> (send: SendRequest, namesHub: Bool, namesTime: Bool) {
    try read(value, recordTime: recordTime, maximumSize: maximumRecordSize, hub: hub)
  }

  /// The time of the event, or else of its record.
  ///
  /// A time in whole seconds may have been cut. It is read as late in its second as the record permits, so that a
  /// device that was registered in that second before the event is not left out.
  private static func acceptedAt(_ event: CloudEvent, recordTime: UnixTime) -> UnixTime {
    guard let time = event.time else { return recordTime.writable }
    return event.isTimeWhole ? min(max(time, recordTime), time + .milliseconds(999)).writable : time
  }

  private static func read(
    _ value: ArraySlice<UInt8>, recordTime: UnixTime, maximumSize: Int, hub: HubName = .default
  ) throws(RecordError) -> (send: SendRequest, namesHub: Bool, namesTime: Bool) {
    var fields = SendFields()
    let (event, ()) = try CloudEvent.read(value, as: .send, maximumSize: maximumSize) { (reader) throws(JSONError) in
      // If `data` occurs several times, the last one counts.
      fields = SendFields()
      try reader.readObject { (key, reader) throws(JSONError) in
        if try !fields.read(key, from: &reader) { try fields.keep(key, from: &reader) }
      }
    }
    guard let id = event.id else { throw RecordError(.undecodable, "id must be a UUID") }
    let namesHub = fields.hub != nil
    if !namesHub { fields.hub = hub }
    if fields.traceparent == nil { fields.traceparent = event.traceparent }
    if let state = event.tracestate, fields.traceparent == event.traceparent { fields.tracestate = state }
    do throws(JSONError) {
      let acceptedAt = Self.acceptedAt(event, recordTime: recordTime)
      return (try fields.request(id: id, acceptedAt: acceptedAt), namesHub, event.time != nil)
    } catch {
      throw RecordError(inData: error)
    }
  }
}

extension JSONReader {
  /// Reads the record of a send inside another record. Returns its bytes unparsed.
  ///
  /// Its grammar is checked when it is decoded, again from depth 0: a send may nest as deeply as in its own record.
  mutating func readEmbeddedSend() throws(JSONError) -> ArraySlice<UInt8> {
    guard try nextKind() == .object else { throw error("must be an object") }
    return try readUnchecked()
  }
}

extension SendRequest {
  /// Decodes the record of a send that another record contains; its errors name the member `send`.
  ///
  /// `maximumSize` is the container's limit: encoding a send again can make it longer than `maximumRecordSize`.
  static func decode(
    embedded record: ArraySlice<UInt8>?, recordTime: UnixTime, maximumSize: Int
  ) throws(JSONError) -> SendRequest {
    guard let record else { throw JSONError(field: "send", problem: "is missing") }
    do throws(RecordError) {
      return try decode(record, recordTime: recordTime, maximumSize: maximumSize)
    } catch {
      throw JSONError(field: "send", problem: error.detail)
    }
  }
}

/// Encodes records of the sends topic one after another.
///
/// The sends of a batch come from one caller at one moment. The part of a record that depends only on these, about a
/// third, is encoded once.
package struct SendRecordWriter {
  /// The send whose part is in `origin`.
  private var model: SendRequest?
  private var origin: [UInt8] = []

  package init() {}

  /// The record of a send, equal to its `encoded()`.
  package mutating func record(of send: SendRequest) -> [UInt8] {
    if model.map({ !Self.haveSameOrigin($0, send) }) ?? true {
      var json = JSONWriter(capacity: 128)
      send.writeOrigin(to: &json)
      origin = json.bytes
      model = send
    }
    var json = JSONWriter(capacity: SendRequest.usualRecordSize)
    CloudEvent.begin(&json) { send.id.append(to: &$0) }
    json.splice(origin)
    send.writeContent(to: &json)
    return json.bytes
  }

  private static func haveSameOrigin(_ one: SendRequest, _ other: SendRequest) -> Bool {
    guard one.acceptedAt == other.acceptedAt, one.hub == other.hub else { return false }
    return switch (one.sender, other.sender) {
    case (nil, nil): true
    // By bytes: canonically equivalent names compare equal as strings, but have different records.
    case (let one?, let other?): one.utf8.elementsEqual(other.utf8)
    default: false
    }
  }
}
