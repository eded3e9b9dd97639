/// The envelope that every topic record has: a CloudEvent 1.0 in structured JSON mode.
struct CloudEvent {
  /// The header value that marks a record as such an event.
  static let contentType = "application/cloudevents+json"

  /// What a record is; an incompatible version of a shape is another type.
  enum RecordType: String {
    case send = "fanfare.send.v1"
    case status = "fanfare.status.v1"
    case deadLetter = "fanfare.dead-letter.v1"
    case retry = "fanfare.retry.v1"
    case segment = "fanfare.segment.v1"

    /// What stands between a record's id and its time: the type, and the role that writes such records. In one piece, because a record is
    /// written for every push, and each piece costs as much as its bytes.
    fileprivate var middle: String {
      switch self {
      case .send: #"","type":"fanfare.send.v1","source":"/fanfare/api","time":"#
      case .status: #"","type":"fanfare.status.v1","source":"/fanfare/worker","time":"#
      case .retry: #"","type":"fanfare.retry.v1","source":"/fanfare/worker","time":"#
      case .segment: #"","type":"fanfare.segment.v1","source":"/fanfare/worker","time":"#
      case .deadLetter: #"","type":"fanfare.dead-letter.v1","source":"/fanfare/worker","time":"#
      }
    }
  }

  /// The id as UTF-8.
  let id: ArraySlice<UInt8>
  let time: UnixTime?
  /// The `data` member as it is written; its grammar is checked by whoever reads it.
  let data: ArraySlice<UInt8>

  /// Reads the envelope of a record that should be of the given type. Throws `.unknownType` for any other type or version, `.tooLarge` and
  /// `.undecodable` as they say.
  static func open(_ record: ArraySlice<UInt8>, as expected: RecordType, maximumSize: Int) throws(RecordError) -> CloudEvent {
    // More than a record of any type may have is not even read.
    let most = max(maximumSize, StatusRecord.maximumRecordSize)
    guard record.count <= most else { throw tooLarge(most) }
    guard !record.isEmpty else { throw RecordError(.undecodable, "the record is empty") }
    var (id, type, version): (ArraySlice<UInt8>?, ArraySlice<UInt8>?, ArraySlice<UInt8>?)
    var time: UnixTime?
    var data: ArraySlice<UInt8>?
    do throws(JSONError) {
      var reader = try JSONReader(record)
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        case "id": id = try reader.readUTF8()
        case "type": type = try reader.readUTF8()
        case "specversion": version = try reader.readUTF8()
        case "data": data = try reader.readUnchecked()
        case "time":
          guard let moment = UnixTime(utf8: try reader.readUTF8()) else { throw reader.error("must be an RFC 3339 date-time") }
          time = moment
        default: try reader.skipValue()
        }
      }
      try reader.finish()
    } catch {
      // Whatever it is, it is too much of it.
      guard record.count <= maximumSize else { throw tooLarge(maximumSize) }
      throw RecordError(.undecodable, error.field.isEmpty ? "the record \(error.problem)" : error.description)
    }
    guard version?.elementsEqual("1.0".utf8) == true else { throw RecordError(.undecodable, "specversion must be \"1.0\"") }
    guard let type else { throw RecordError(.undecodable, "type is missing") }
    guard type.elementsEqual(expected.rawValue.utf8) else {
      throw RecordError(.unknownType, "type must be \"\(expected.rawValue)\"")
    }
    guard record.count <= maximumSize else { throw tooLarge(maximumSize) }
    guard let id, !id.isEmpty else { throw RecordError(.undecodable, "id is missing") }
    guard let data else { throw RecordError(.undecodable, "data is missing") }
    return CloudEvent(id: id, time: time, data: data)
  }

  private static func tooLarge(_ maximumSize: Int) -> RecordError {
    RecordError(.tooLarge, "the record has more than \(maximumSize) bytes")
  }

  /// Begins a record up to and including `"data":`; the caller appends the data and the closing brace.
  static func begin(_ type: RecordType, time: UnixTime, capacity: Int, id: (inout [UInt8]) -> Void) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(capacity)
    output.append(literal: opening)
    id(&output)
    appendMiddle(type, time: time, to: &output)
    return output
  }

  /// What a record begins with: its id follows.
  static let opening = #"{"specversion":"1.0","id":""#

  /// Appends what stands between a record's id and its data.
  static func appendMiddle(_ type: RecordType, time: UnixTime, to output: inout [UInt8]) {
    output.append(literal: type.middle)
    output.appendJSON(time)
    output.append(literal: #","data":"#)
  }
}
