import FanfareCore
import Logging
import RDKafka
import Roles

/// Produces logged sends to the sends topic again.
struct Replay {
  let settings: Settings
  let isDryRun: Bool
  let logger: Logger

  struct Outcome: Encodable {
    /// The id of the replay.
    let replay: String
    /// The sends produced again; in a dry run, the sends that a real run would produce.
    var replayed = 0
    /// Sends skipped because they were cancelled.
    var cancelled = 0
  }

  /// Runs the replay and returns when Kafka has acknowledged all records.
  ///
  /// It reads the positions before the ends, as `Audit` does. So the status record or retry record of each record below
  /// a position lies below the ends.
  func run(_ selection: ReplaySelection) async throws -> Outcome {
    var selection = selection
    let topics = settings.kafka.topics
    let reader = try LogReader(client: try settings.kafka.client("replay"), logger: logger)
    let retryTopics = topics.retries + topics.retired(among: try await reader.topics())
    let retries = retryTopics.map(\.name)
    let scan = TopicScan(.reports(command: "replay"), reader: reader)
    var positions = try await reader.committed(
      by: settings.workerGroup, in: try await reader.partitions(of: [topics.sends, topics.segments]))
    for retry in retryTopics {
      positions += try await reader.committed(
        by: retry.name, in: try await reader.partitions(of: [retry.name]))
    }
    let done = Dictionary(uniqueKeysWithValues: positions.map { ($0.partition, $0.offset) })
    let statuses = try await reader.spans(of: [topics.status])
    let sends = try await reader.spans(of: [topics.sends])
    let waiting = (sends + (try await reader.spans(of: [topics.segments] + retries))).map { span in
      LogSpan(partition: span.partition, start: max(span.start, done[span.partition] ?? span.start), end: span.end)
    }
    try await scan.read(statuses + waiting) { records in
      for record in records {
        if record.topic == topics.status {
          do throws(RecordError) { selection.note(try StatusRecord.decode(record.value)) } catch { continue }
        } else {
          switch AuditFact(record, topics: topics) {
          case .accepted(let send), .deferred(let send): selection.noteWaiting(send)
          case .settled, .deadLettered, .poison, .unreadable, nil: break
          }
        }
      }
      return true
    }
    let id = ReplayID.random()
    return try await LogWriter.with(settings.kafka, command: "replay", logger: logger) { writer in
      var outcome = Outcome(replay: id.description)
      try await scan.read(sends) { records in
        for record in records {
          let send: SendRequest
          do throws(RecordError) {
            send = try SendRequest.decode(record.value, recordTime: UnixTime(milliseconds: max(0, record.timestamp)))
          } catch {
            // The record is poisoned, or it is not a send as accepted by the front end.
            continue
          }
          guard let again = selection.replay(send, by: id) else { continue }
          outcome.replayed += 1
          guard !isDryRun else { continue }
          try await writer.add(
            ProducerRecord(
              topic: topics.sends, key: record.key.map(Array.init), value: again.encoded(), headers: record.headers))
        }
        return true
      }
      outcome.cancelled = selection.cancelled
      return outcome
    }
  }
}
