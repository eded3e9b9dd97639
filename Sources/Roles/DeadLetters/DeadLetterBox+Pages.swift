import FanfareCore
package import FrontEnd
import RDKafka

extension DeadLetterBox {
  /// Examines at most the given number of the newest records before the query's position.
  ///
  /// Partitions are merged by the time of their letters: within a partition letters stay in the order of the log.
  package func page(_ query: DeadLetterQuery, records: Int64) async throws -> DeadLetterPage {
    let spans = try await scan.reader.spans(of: [topic]).map { span in
      let end = query.before?.offsets[span.partition.partition] ?? span.end
      return LogSpan(partition: span.partition, start: span.start, end: min(span.end, max(span.start, end)))
    }
    let tails = Self.tails(of: spans, records: records)
    var visible: [Int32: [LetterSummary]] = [:]
    var counts: [DeadLetter.Reason: Int] = [:]
    try await scan.read(tails) { records in
      for record in records {
        let letter: DeadLetter
        // What is not a dead letter has no reason, and nothing to show.
        do throws(RecordError) { letter = try DeadLetter.decode(record.value) } catch { continue }
        guard query.isVisible(letter) else { continue }
        counts[letter.reason, default: 0] += 1
        guard query.reason == nil || query.reason == letter.reason else { continue }
        let place = LogPlace(partition: record.partition, offset: record.offset)
        visible[record.partition, default: []].append(LetterSummary(letter, at: place))
      }
      return true
    }
    var merge = TailMerge(tails.map { ($0, visible[$0.partition.partition] ?? []) }, whole: spans)
    var letters: [LetterSummary] = []
    while letters.count < query.limit, let letter = merge.next() { letters.append(letter) }
    return DeadLetterPage(
      letters: letters, counts: counts, countsAll: zip(spans, tails).allSatisfy { $0.start == $1.start },
      next: merge.position)
  }

  /// The ends of the spans, together at most the given number of records, shared out evenly.
  private static func tails(of spans: [LogSpan], records: Int64) -> [LogSpan] {
    var starts: [TopicPartition: Int64] = [:]
    var rest = records
    let ascending = spans.sorted { $0.count < $1.count }
    for (index, span) in ascending.enumerated() {
      let share = min(span.count, max(1, rest / Int64(ascending.count - index)))
      starts[span.partition] = span.end - share
      rest -= share
    }
    return spans.map { span in
      LogSpan(partition: span.partition, start: starts[span.partition] ?? span.start, end: span.end)
    }
  }
}

/// Merges the letters of several partitions, the newest first.
private struct TailMerge {
  private struct Tail {
    let partition: Int32
    /// In ascending order; the last one is next.
    var letters: [LetterSummary]
    /// The offset below which the next page continues.
    var end: Int64
    /// The first examined offset.
    let start: Int64
    /// Whether there are records before `start`.
    let hasMore: Bool
  }

  private var tails: [Tail]

  init(_ tails: [(span: LogSpan, letters: [LetterSummary])], whole: [LogSpan]) {
    self.tails = zip(tails, whole).map { tail, whole in
      Tail(
        partition: whole.partition.partition, letters: tail.letters.sorted { $0.place < $1.place },
        end: tail.letters.isEmpty ? tail.span.start : tail.span.end, start: tail.span.start,
        hasMore: tail.span.start > whole.start)
    }
  }

  /// The newest of the remaining letters; nil if a partition's unexamined records may have a newer one, or at the end.
  mutating func next() -> LetterSummary? {
    guard !tails.contains(where: { $0.letters.isEmpty && $0.hasMore }) else { return nil }
    let newest = tails.indices.filter { !tails[$0].letters.isEmpty }
      .max { one, other in
        guard let first = tails[one].letters.last, let second = tails[other].letters.last else { return false }
        return (first.at, first.place) < (second.at, second.place)
      }
    guard let newest, let letter = tails[newest].letters.popLast() else { return nil }
    tails[newest].end = tails[newest].letters.isEmpty ? tails[newest].start : letter.place.offset
    return letter
  }

  /// Where the next page continues; nil if nothing remains.
  var position: DeadLetterPosition? {
    guard tails.contains(where: { !$0.letters.isEmpty || $0.hasMore }) else { return nil }
    return DeadLetterPosition(Dictionary(uniqueKeysWithValues: tails.map { ($0.partition, $0.end) }))
  }
}
