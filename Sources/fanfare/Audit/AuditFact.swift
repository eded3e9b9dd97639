import FanfareCore
import RDKafka

/// The meaning of one record for the account.
enum AuditFact: Equatable {
  /// A send has been accepted.
  case accepted(SendKey)
  /// A deferred record or a segment waits, or was readmitted; the send was accepted before.
  case deferred(SendKey)
  /// Some consecutive parts of a send have ended, nearly always one.
  case settled(SendKey, part: Int, parts: Int, span: Int = 1, attempt: DispatchID?)
  /// A record was dead-lettered.
  ///
  /// The send is known if the record is a send, the deferred rest of one, or (`isPart`) one of several parts of one.
  case deadLettered(AuditPlace, SendKey?, isPart: Bool)
  /// A record of the sends topic that workers cannot read.
  case poison
  /// A status record or dead letter that cannot be read.
  case unreadable

  /// Reads a record of any topic as the workers and the ledger do; nil if the account ignores it.
  init?(_ record: ConsumedRecord, topics: Topics) {
    switch record.topic {
    case topics.status:
      guard let status = Self.ifReadable({ () throws(RecordError) in try StatusRecord.decode(record.value) }) else {
        self = .unreadable
        return
      }
      self = .settled(
        SendKey(hub: status.hub, id: status.send), part: status.part, parts: status.parts, span: status.span,
        attempt: status.attempt)
    case topics.deadLetter:
      guard let letter = Self.ifReadable({ () throws(RecordError) in try DeadLetter.decode(record.value) }) else {
        self = .unreadable
        return
      }
      let origin = AuditPlace(
        topic: letter.origin.topic, partition: letter.origin.partition, offset: letter.origin.offset)
      if let send = Self.send(letter.value[...]) {
        self = .deadLettered(origin, send.key, isPart: send.isPart)
      } else {
        self = .deadLettered(origin, Self.sendOfSegment(letter.value[...]), isPart: true)
      }
    case topics.sends:
      switch Self.send(record.value) {
      case (let key, isNew: true, _)?: self = .accepted(key)
      case (let key, isNew: false, _)?: self = .deferred(key)
      case nil: self = .poison
      }
    case topics.segments:
      // An unreadable segment is dead-lettered.
      guard let send = Self.sendOfSegment(record.value) else { return nil }
      self = .deferred(send)
    default:
      // The pump copies an unreadable record to the sends topic, where it is counted.
      guard let send = Self.send(record.value) else { return nil }
      self = .deferred(send.key)
    }
  }

  /// The send in the value, or the send of which the value is the deferred rest; nil if it is neither.
  private static func send(_ value: ArraySlice<UInt8>) -> (key: SendKey, isNew: Bool, isPart: Bool)? {
    // Decoding needs the present time, but the account uses only times that are in the record.
    let time = UnixTime(milliseconds: 0)
    do throws(RecordError) {
      let send = try SendRequest.decode(value, recordTime: time)
      return (SendKey(hub: send.hub, id: send.id), true, false)
    } catch {
      guard error.reason == .unknownType else { return nil }
      return ifReadable { () throws(RecordError) in try RetryRecord.decode(value, recordTime: time) }
        .map { (SendKey(hub: $0.send.hub, id: $0.send.id), false, $0.parts > 1) }
    }
  }

  private static func sendOfSegment(_ value: ArraySlice<UInt8>) -> SendKey? {
    ifReadable { () throws(RecordError) in try SegmentRecord.decode(value, recordTime: UnixTime(milliseconds: 0)) }
      .map { SendKey(hub: $0.send.hub, id: $0.send.id) }
  }

  private static func ifReadable<Value>(_ read: () throws(RecordError) -> Value) -> Value? {
    do throws(RecordError) { return try read() } catch { return nil }
  }
}
