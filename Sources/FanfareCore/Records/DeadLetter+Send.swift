extension DeadLetter {
  /// The record of a dead letter that workers can read, for instance because its hub was unknown.
  package enum Record: Hashable, Sendable {
    /// A send as it was accepted.
    case send(SendRequest)
    /// A segment of a broadcast.
    case segment(SegmentRecord)
    /// The deferred rest of a send.
    case rest(RetryRecord)

    package var send: SendRequest {
      switch self {
      case .send(let send): send
      case .segment(let segment): segment.send
      case .rest(let rest): rest.send
      }
    }
  }

  /// Decodes the letter's record; nil if it is none of these, or not whole.
  package func decodedRecord() -> Record? {
    func read<Value>(_ decode: () throws(RecordError) -> Value) -> Value? {
      do throws(RecordError) { return try decode() } catch { return nil }
    }
    guard isWhole else { return nil }
    let value = value[...]
    return read { () throws(RecordError) in .send(try SendRequest.decode(value, recordTime: at)) }
      ?? read { () throws(RecordError) in .segment(try SegmentRecord.decode(value, recordTime: at)) }
      ?? read { () throws(RecordError) in .rest(try RetryRecord.decode(value, recordTime: at)) }
  }
}
