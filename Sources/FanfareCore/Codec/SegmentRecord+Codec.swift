extension SegmentRecord {
  /// The most bytes in a record of the segments topic: a rewritten send and the envelope.
  package static let maximumRecordSize = SendRequest.maximumRewrittenSize + 2048

  /// The record of the segments topic.
  /// Its event id is `<send>/<first page>`. It contains the whole send, including members that this version does not
  /// know.
  package func encoded(at time: UnixTime) -> [UInt8] {
    let request = send.encoded()
    return CloudEvent.record(
      .segment, time: time, capacity: 320 + request.count, traceparent: send.traceparent, tracestate: send.tracestate
    ) { id in
      CloudEvent.appendID(of: send.id, attempt: nil, part: range.lowerBound, to: &id)
    } data: { json in
      json.member("pages", pages)
      json.member("first", range.lowerBound)
      json.member("count", range.count)
      json.member("send", json: request)
    }
  }

  /// Reads a record of the segments topic. Unknown members are ignored, except those of the send.
  package static func decode(_ value: ArraySlice<UInt8>, recordTime: UnixTime) throws(RecordError) -> SegmentRecord {
    try CloudEvent.read(value, as: .segment, maximumSize: maximumRecordSize) { (reader) throws(JSONError) in
      try read(from: &reader, recordTime: recordTime)
    }.data
  }

  private static func read(from reader: inout JSONReader, recordTime: UnixTime) throws(JSONError) -> SegmentRecord {
    var (pages, first, count): (Int64?, Int64?, Int64?)
    var request: ArraySlice<UInt8>?
    let limit = Int64(StatusRecord.maximumParts)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "pages": pages = try reader.readInteger()
      case "first": first = try reader.readInteger()
      case "count": count = try reader.readInteger()
      case "send": request = try reader.readEmbeddedSend()
      default: try reader.skipValue()
      }
    }
    guard let pages, (1...limit).contains(pages) else {
      throw JSONError(field: "pages", problem: "must be 1 to \(limit)")
    }
    guard let first, (0..<pages).contains(first) else {
      throw JSONError(field: "first", problem: "must be 0 to \(pages - 1)")
    }
    guard let count, (1...(pages - first)).contains(count) else {
      throw JSONError(field: "count", problem: "must be 1 to \(pages - first)")
    }
    let send = try SendRequest.decode(embedded: request, recordTime: recordTime, maximumSize: maximumRecordSize)
    return SegmentRecord(send: send, pages: Int(pages), range: Int(first)..<Int(first + count))
  }
}
