extension SegmentRecord {
  /// The most bytes of such a record: those of a send that was written anew, and its envelope.
  package static let maximumRecordSize = SendRequest.maximumRewrittenSize + 2048

  /// The record of the segments topic. Its event id is `<send>/<first page>`; the send is in it whole, with what this
  /// version does not know of its data.
  package func encoded(at time: UnixTime) -> [UInt8] {
    let request = send.encoded()
    var output = CloudEvent.begin(.segment, time: time, capacity: 320 + request.count) { output in
      send.id.append(to: &output)
      output.append(UInt8(ascii: "/"))
      output.appendJSON(range.lowerBound)
    }
    output.append(literal: #"{"pages":"#)
    output.appendJSON(pages)
    output.append(literal: #","first":"#)
    output.appendJSON(range.lowerBound)
    output.append(literal: #","count":"#)
    output.appendJSON(range.count)
    output.append(literal: #","send":"#)
    output.append(contentsOf: request)
    output.append(literal: "}}")
    return output
  }

  /// Reads a record of the segments topic. Members that this version does not know are passed over, but for the send's.
  package static func decode(_ value: ArraySlice<UInt8>, recordTime: UnixTime) throws(RecordError) -> SegmentRecord {
    try CloudEvent.read(value, as: .segment, maximumSize: maximumRecordSize) { (reader) throws(JSONError) in
      try read(from: &reader, recordTime: recordTime)
    }.data
  }

  private static func read(from reader: inout JSONReader, recordTime: UnixTime) throws(JSONError) -> SegmentRecord {
    var (pages, first, count): (Int64?, Int64?, Int64?)
    var request: ArraySlice<UInt8>?
    let most = Int64(StatusRecord.maximumParts)
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "pages": pages = try reader.readInteger()
      case "first": first = try reader.readInteger()
      case "count": count = try reader.readInteger()
      case "send":
        guard try reader.nextKind() == .object else { throw reader.error("must be an object") }
        // Its grammar is checked when it is decoded, from depth 0 again: what a send may nest fits here, too.
        request = try reader.readUnchecked()
      default: try reader.skipValue()
      }
    }
    guard let pages, (1...most).contains(pages) else {
      throw JSONError(field: "pages", problem: "must be 1 to \(most)")
    }
    guard let first, (0..<pages).contains(first) else {
      throw JSONError(field: "first", problem: "must be 0 to \(pages - 1)")
    }
    guard let count, (1...(pages - first)).contains(count) else {
      throw JSONError(field: "count", problem: "must be 1 to \(pages - first)")
    }
    guard let request else { throw JSONError(field: "send", problem: "is missing") }
    do throws(RecordError) {
      let send = try SendRequest.decode(request, recordTime: recordTime, maximumSize: maximumRecordSize)
      return SegmentRecord(send: send, pages: Int(pages), range: Int(first)..<Int(first + count))
    } catch {
      throw JSONError(field: "send", problem: error.detail)
    }
  }
}
