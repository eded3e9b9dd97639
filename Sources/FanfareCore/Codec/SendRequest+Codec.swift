extension SendRequest {
  /// The most bytes a record of the sends topic may have: a request body at its limit with room for the envelope and
  /// escapes.
  package static let maximumRecordSize = 512 * 1024
  /// The most bytes of a send of that size that was written anew: an escape of two characters may have become one of
  /// six, and what the writer left out is there, as is `replay`.
  package static let maximumRewrittenSize = maximumRecordSize * 3 + 2048
  /// The most seconds a send may live: the longest that every service accepts (FCM's four weeks).
  package static let maximumTimeToLive = 2_419_200
  /// The most bytes of UTF-8 in a collapse key (APNs' limit).
  package static let maximumCollapseKeyLength = 64
  /// The highest rate that a caller may ask a broadcast to be held to, in pushes per second.
  package static let greatestMaximumPerSecond = 10_000_000

  /// The record of the sends topic.
  package func encoded() -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(Self.usualRecordSize)
    output.append(literal: CloudEvent.opening)
    id.append(to: &output)
    appendOrigin(to: &output)
    appendMatter(to: &output)
    return output
  }

  /// What nearly all records have room in.
  static let usualRecordSize = 512

  /// Appends what follows the id, and is the same for all that a caller sends at one moment.
  func appendOrigin(to output: inout [UInt8]) {
    CloudEvent.appendMiddle(.send, time: acceptedAt, to: &output)
    output.append(literal: #"{"hub":"#)
    output.appendJSON(hub.rawValue)
    if let sender {
      output.append(literal: #","sender":"#)
      output.appendJSON(sender)
    }
  }

  /// Appends the rest of the record.
  func appendMatter(to output: inout [UInt8]) {
    output.append(literal: #","to":"#)
    audience.append(to: &output)
    if platforms != .all {
      output.append(literal: #","platforms":["#)
      for (index, platform) in platforms.platforms.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        output.appendJSON(platform.rawValue)
      }
      output.append(UInt8(ascii: "]"))
    }
    content.append(to: &output)
    if let timeToLive {
      output.append(literal: #","ttl":"#)
      output.appendJSON(timeToLive)
    }
    if priority != .high { output.append(literal: #","priority":"normal""#) }
    if let collapseKey {
      output.append(literal: #","collapseKey":"#)
      output.appendJSON(collapseKey)
    }
    if let maximumPerSecond {
      output.append(literal: #","maxPerSecond":"#)
      output.appendJSON(maximumPerSecond)
    }
    if let traceparent {
      output.append(literal: #","traceparent":"#)
      output.appendJSON(traceparent)
    }
    if let replay {
      output.append(literal: #","replay":"#)
      output.appendJSON(replay)
    }
    output.append(contentsOf: unknownMembers)
    output.append(literal: "}}")
  }

  /// Reads a record of the sends topic. Of members that this version does not know those of `data` are kept as they
  /// are, and the others passed over; `recordTime`, the log's own time of the record, stands in where the event has
  /// none. A replay may have `maximumRewrittenSize`: it was taken from the log and written anew.
  package static func decode(
    _ value: ArraySlice<UInt8>, recordTime: UnixTime, maximumSize: Int = maximumRecordSize
  ) throws(RecordError) -> SendRequest {
    do throws(RecordError) {
      return try read(value, recordTime: recordTime, maximumSize: maximumSize)
    } catch  where error.reason == .tooLarge && value.count <= maximumRewrittenSize {
      // What is no replay is refused for its size, whatever else is wrong with it.
      guard let send = try? read(value, recordTime: recordTime, maximumSize: maximumRewrittenSize), send.replay != nil
      else {
        throw error
      }
      return send
    }
  }

  private static func read(
    _ value: ArraySlice<UInt8>, recordTime: UnixTime, maximumSize: Int
  ) throws(RecordError) -> SendRequest {
    var fields = SendFields()
    let (event, ()) = try CloudEvent.read(value, as: .send, maximumSize: maximumSize) { (reader) throws(JSONError) in
      // Of several members of that name the last counts.
      fields = SendFields()
      try reader.readObject { (key, reader) throws(JSONError) in
        if try !fields.read(key, from: &reader) { try fields.keep(key, from: &reader) }
      }
    }
    guard let id = event.id else { throw RecordError(.undecodable, "id must be a UUID") }
    do throws(JSONError) {
      return try fields.request(id: id, acceptedAt: event.time ?? recordTime.writable)
    } catch {
      throw RecordError(inData: error)
    }
  }
}
