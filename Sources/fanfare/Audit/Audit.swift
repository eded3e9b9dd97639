import FanfareCore
import Logging
import RDKafka
import Roles

/// Compares the accepted sends with their outcomes, over the whole log.
///
/// The result is correct even while the system runs, because the audit reads in this order:
///
/// 1. *The committed positions.* A worker commits a record only after Kafka has acknowledged its successors: the status
///    record, the retry record of the deferred rest, or all segments of a broadcast. A pump commits a retry record only
///    after Kafka has acknowledged its copy on the sends topic. So every record below a position has its successors in
///    the log already. The successors of a send end in its status, or in a record at or above a position; a send with
///    neither is lost.
/// 2. *The end of the status topic.* Status records below it count as settled. They include those of all records below
///    the positions.
/// 3. *The ends of the other topics.* Below them are all retry records and copies of step 1, and the record of each
///    send with a status below the end of step 2. A send accepted after step 1 lies above the positions: it is in
///    flight.
struct Audit {
  let settings: Settings
  let logger: Logger
  /// The age at which the cluster deletes a status record; nil on a cluster that deletes by size.
  let retention: Duration?
  /// The places of known problems, with the reasons.
  var acknowledged: [AuditPlace: String] = [:]

  /// Creates an audit that assumes the retention with which `fanfare topics create` makes the topics.
  init(settings: Settings, logger: Logger) {
    let topic = settings.kafka.specifications(replicationFactor: 1).first { $0.name == settings.kafka.topics.status }
    let retention = topic?.configuration["retention.ms"].flatMap { Int64($0) }.map { Duration.milliseconds($0) }
    self.init(settings: settings, logger: logger, retention: retention)
  }

  init(settings: Settings, logger: Logger, retention: Duration?) {
    (self.settings, self.logger, self.retention) = (settings, logger, retention)
  }

  /// Reads all topics. Throws when Kafka cannot be read.
  func run() async throws -> AuditReport {
    let topics = settings.kafka.topics
    let reader = try LogReader(client: try settings.kafka.client("audit"), logger: logger)
    let retryTopics = topics.retries + topics.retired(among: try await reader.topics())
    let retries = retryTopics.map(\.name)

    var positions = try await reader.committed(
      by: settings.workerGroup, in: try await reader.partitions(of: [topics.sends, topics.segments]))
    for retry in retryTopics {
      positions += try await reader.committed(
        by: retry.name, in: try await reader.partitions(of: [retry.name]))
    }
    let statuses = try await reader.spans(of: [topics.status])
    let others = try await reader.spans(of: [topics.sends, topics.segments, topics.deadLetter] + retries)

    var committed: [String: [Int32: Int64]] = [:]
    for position in positions {
      committed[position.partition.topic, default: [:]][position.partition.partition] = position.offset
    }
    var account = Account(topics: topics, positions: committed, acknowledged: acknowledged)
    try await TopicScan(.reports(command: "audit"), reader: reader).read(statuses + others) { records in
      for record in records {
        guard let fact = AuditFact(record, topics: topics) else { continue }
        account.add(
          fact, at: AuditPlace(topic: record.topic, partition: record.partition, offset: record.offset),
          time: UnixTime(milliseconds: record.timestamp))
      }
      return true
    }
    let deleted = Self.deletedUnread(
      others.filter { $0.partition.topic != topics.deadLetter }, committed: committed, statuses: statuses)
    // The cluster may have deleted records during the scan, before they were read.
    let left = try await reader.spans(of: [topics.sends, topics.status, topics.deadLetter])
    func isCut(_ topic: String) -> Bool { left.contains { $0.partition.topic == topic && $0.start > 0 } }
    return account.report(
      isCutAtStart: isCut(topics.sends),
      statusesFrom: try await beginning(of: left.filter { $0.partition.topic == topics.status }, reader),
      isDeadLetterTopicWhole: !isCut(topics.deadLetter), deleted: deleted)
  }

  /// The places and numbers of records that were deleted before their consumers reached them.
  ///
  /// If a partition has no committed position and there has never been a status record, none of its records was read.
  /// If there has been one, the position is unknown: the cluster deletes the positions of a group that is inactive for
  /// long, and the group commits again only after a new record.
  static func deletedUnread(
    _ spans: [LogSpan], committed: [String: [Int32: Int64]], statuses: [LogSpan]
  ) -> [(place: AuditPlace, records: Int64)] {
    let hasNeverWorked = statuses.allSatisfy { $0.end == 0 }
    return spans.compactMap { span in
      let partition = span.partition.partition
      guard let position = committed[span.partition.topic]?[partition] ?? (hasNeverWorked ? 0 : nil),
        position < span.start
      else { return nil }
      return (AuditPlace(topic: span.partition.topic, partition: partition, offset: position), span.start - position)
    }
  }

  /// The time from which on all status records exist; nil if none was ever deleted.
  ///
  /// A status record is written after its send. So the sends of deleted status records were accepted no later than the
  /// time of the oldest remaining record of the partition. They are also at least as old as the retention; this bound
  /// matters after a silence, when the oldest remaining record may be of today.
  func beginning(of spans: [LogSpan], _ reader: LogReader) async throws -> UnixTime? {
    let cut = spans.filter { $0.start > 0 }
    guard !cut.isEmpty else { return nil }
    let filled = cut.filter { $0.count > 0 }
    var firsts: [Int32: UnixTime] = [:]
    if !filled.isEmpty {
      // Reads to the ends, because the first record may be deleted before it is read.
      try await TopicScan(.reports(command: "audit"), reader: reader).read(filled) { records in
        for record in records where firsts[record.partition] == nil {
          firsts[record.partition] = UnixTime(milliseconds: record.timestamp)
        }
        return firsts.count < filled.count
      }
    }
    // An empty partition has no oldest record.
    let youngest = firsts.count < cut.count ? nil : firsts.values.max()
    // Computed after the reading, because records as young as this may have been deleted meanwhile.
    let old = retention.map { SystemWallClock().now() + (.zero - $0) }
    return [youngest, old].compactMap(\.self).min() ?? UnixTime(milliseconds: .max)
  }
}
