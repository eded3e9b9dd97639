/// The envelope that every topic record has: a CloudEvent 1.0 in structured JSON mode.
package struct CloudEvent {
  /// The value of the header `content-type`, which marks a record as such an event.
  package static let contentType = "application/cloudevents+json"

  /// What a record is; an incompatible version of a shape is another type.
  enum RecordType: String {
    case send = "fanfare.send.v1"
    case status = "fanfare.status.v1"
    case deadLetter = "fanfare.dead-letter.v1"
    case retry = "fanfare.retry.v1"
    case segment = "fanfare.segment.v1"

    /// What stands between a record's id and its time: the type, and the role that writes such records. In one piece,
    /// because a record is written for every push, and each piece costs as much as its bytes.
    fileprivate var middle: StaticString {
      switch self {
      case .send: #"","type":"fanfare.send.v1","source":"/fanfare/api","time":"#
      case .status: #"","type":"fanfare.status.v1","source":"/fanfare/worker","time":"#
      case .retry: #"","type":"fanfare.retry.v1","source":"/fanfare/worker","time":"#
      case .segment: #"","type":"fanfare.segment.v1","source":"/fanfare/worker","time":"#
      case .deadLetter: #"","type":"fanfare.dead-letter.v1","source":"/fanfare/worker","time":"#
      }
    }
  }

  /// The id, where it is a UUID.
  let id: SendID?
  let time: UnixTime?

  /// Reads a record that should be of the given type, and by `read` its data, an object; `read` may be called more than
  /// once. Of several members of one name the last counts. Throws `.unknownType` for any other type, `.tooLarge` and
  /// `.undecodable` as they say.
  static func read<Value>(
    _ record: ArraySlice<UInt8>, as expected: RecordType, maximumSize: Int,
    data read: (inout JSONReader) throws(JSONError) -> Value
  ) throws(RecordError) -> (event: CloudEvent, data: Value) {
    // More than a record of any type may have is not even read.
    let most = max(maximumSize, StatusRecord.maximumRecordSize)
    guard record.count <= most else { throw tooLarge(most) }
    guard !record.isEmpty else { throw RecordError(.undecodable, "the record is empty") }
    var (hasID, id, time): (Bool, SendID?, UnixTime?) = (false, nil, nil)
    var (hasType, hasVersion): (Bool?, Bool) = (nil, false)
    var (data, later): (Value?, ArraySlice<UInt8>?)
    do throws(JSONError) {
      var reader = try JSONReader(record)
      try reader.readObject { (key, reader) throws(JSONError) in
        switch key {
        case "id": (hasID, id) = try reader.readUTF8 { (!$0.isEmpty, SendID(utf8: $0)) }
        case "type": hasType = try reader.readUTF8 { $0.hasBytes(of: expected.rawValue) }
        case "specversion": hasVersion = try reader.readUTF8 { $0.hasBytes(of: "1.0") }
        case "data":
          // Read in passing where it is known to be what is wanted. Otherwise, and if it is faulty, its turn comes when
          // all the rest is known.
          let start = reader.position
          if hasType == true, hasVersion, record.count <= maximumSize {
            do throws(JSONError) {
              data = try reader.readApart(read)
              later = nil
              return
            } catch { reader.position = start }
          }
          later = try reader.readUnchecked()
        case "time":
          // CloudEvents' JSON format: null is the same as a missing attribute.
          let isMissing = try reader.readNull()
          time = try isMissing ? nil : reader.readTime()
          guard isMissing || time != nil else { throw reader.error("must be an RFC 3339 date-time") }
        default: try reader.skipValue()
        }
      }
      try reader.finish()
    } catch {
      // Whatever it is, it is too much of it.
      guard record.count <= maximumSize else { throw tooLarge(maximumSize) }
      throw RecordError(.undecodable, error.field.isEmpty ? "the record \(error.problem)" : error.description)
    }
    guard hasVersion else { throw RecordError(.undecodable, "specversion must be \"1.0\"") }
    guard let hasType else { throw RecordError(.undecodable, "type is missing") }
    guard hasType else { throw RecordError(.unknownType, "type must be \"\(expected.rawValue)\"") }
    guard record.count <= maximumSize else { throw tooLarge(maximumSize) }
    guard hasID else { throw RecordError(.undecodable, "id is missing") }
    if let later {
      var reader = JSONReader(validated: later)
      do throws(JSONError) { data = try read(&reader) } catch { throw RecordError(inData: error) }
    }
    guard let data else { throw RecordError(.undecodable, "data is missing") }
    return (CloudEvent(id: id, time: time), data)
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
  static let opening: StaticString = #"{"specversion":"1.0","id":""#

  /// Appends what stands between a record's id and its data.
  static func appendMiddle(_ type: RecordType, time: UnixTime, to output: inout [UInt8]) {
    output.append(literal: type.middle)
    output.appendJSON(time)
    output.append(literal: #","data":"#)
  }
}
