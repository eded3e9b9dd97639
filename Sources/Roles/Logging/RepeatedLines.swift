import FanfareCore
import Logging

/// Decides which log lines are written and which are only counted because an equal one was written before.
///
/// The first line of a kind is written at once. Further ones are counted for `window`, then one line stands for all of
/// them, with the data of the last; so a fault that lasts writes one line for each kind and window. Once none came for
/// a window, the kind is forgotten.
///
/// A kind is the logger, the level, the message and the data, without what differs from case to case: ids, counts, and
/// numbers in free text. `debug` and `trace` are detail that was asked for, and are not counted.
///
/// Invariant: at most `2 * maximumKinds + 1` kinds are known.
struct RepeatedLines {
  /// The time for which equal lines are counted.
  static let window = Duration.seconds(30)

  /// The data of which the value makes no kind: ids, positions and counts, and the names of a Kafka client and of a
  /// connection, because all clients of a process report the same outage for each of their connections.
  private static let ignored: Set<String> = [
    "attempt", "count", "http2_connection", "http2_last_stream_id", "kafka.client", "kafka.connection", "kafka.group",
    "kafka.records", "next_attempt_in", "offset", "partition", "postgresql.failures", "records", "request.id",
    "secure.id", "send", "send.id",
  ]
  /// The data with free text, in which numbers and ids vary.
  private static let free: Set<String> = [
    "detail", "error", "kafka.text", "postgresql.reason", "problem.detail", "reason",
  ]

  private struct Kind: Hashable {
    let logger: String
    let level: Logger.Level
    let message: String
    let data: String
  }

  private struct Count {
    var since: UnixTime
    var repetitions = 0
    /// The last counted line.
    var last: LogLine?
  }

  private let maximumKinds: Int
  private var counts: [Kind: Count] = [:]

  init(maximumKinds: Int = 512) { self.maximumKinds = maximumKinds }

  /// The number of kinds that are known.
  var kinds: Int { counts.count }

  /// Returns the lines to write now, in order: none, the line, or a summary of earlier ones.
  mutating func take(_ line: LogLine) -> [LogLine] {
    guard line.level >= .info else { return [line] }
    let kind = kind(of: line)
    guard var count = counts[kind] else {
      counts[kind] = Count(since: line.time)
      return [line]
    }
    count.repetitions += 1
    count.last = line
    // The clock may step back.
    if line.time < count.since { count.since = line.time }
    guard line.time - count.since >= Self.window else {
      counts[kind] = count
      return []
    }
    counts[kind] = Count(since: line.time)
    return [Self.summary(count, at: line.time)].compactMap(\.self)
  }

  /// Returns the summaries of the windows that have ended. Call it from time to time.
  mutating func due(at now: UnixTime) -> [LogLine] {
    var lines: [LogLine] = []
    for (kind, count) in counts where now - count.since >= Self.window || now < count.since {
      let summary = Self.summary(count, at: now)
      if let summary { lines.append(summary) }
      counts[kind] = summary == nil ? nil : Count(since: now)
    }
    return lines.sorted { $0.message < $1.message }
  }

  /// Returns the summaries of all windows and forgets them: the process ends.
  mutating func finish(at now: UnixTime) -> [LogLine] {
    defer { counts = [:] }
    return counts.values.compactMap { Self.summary($0, at: now) }.sorted { $0.message < $1.message }
  }

  /// The line that stands for the counted ones. A warning at most: the error was said when it came first.
  private static func summary(_ count: Count, at now: UnixTime) -> LogLine? {
    guard var line = count.last else { return nil }
    line.level = min(line.level, .warning)
    line.time = now
    line.repetition = (count.repetitions, max(.seconds(1), now - count.since))
    return line
  }

  private func kind(of line: LogLine) -> Kind {
    var data = ""
    for (key, value) in line.metadata where !Self.ignored.contains(key) {
      data += "\(key)=" + (Self.free.contains(key) ? Self.withoutNumbers("\(value)") : "\(value)") + "\n"
    }
    let kind = Kind(logger: line.logger, level: line.level, message: line.message, data: data)
    if counts[kind] != nil || counts.count < maximumKinds { return kind }
    let coarse = Kind(logger: line.logger, level: line.level, message: line.message, data: "")
    if counts[coarse] != nil || counts.count < 2 * maximumKinds { return coarse }
    return Kind(logger: "", level: .info, message: "", data: "")
  }

  /// The text with each word that has a digit replaced by `#`: ports, times, ids.
  private static func withoutNumbers(_ text: String) -> String {
    var result = ""
    var word = ""
    func end() {
      result += word.utf8.contains { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? "#" : word
      word = ""
    }
    for character in text {
      if character.isLetter || character.isNumber {
        word.append(character)
      } else {
        end()
        result.append(character)
      }
    }
    end()
    return result
  }
}
