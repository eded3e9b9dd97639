import FanfareCore
import Logging

/// One line of the log, before it has a form.
struct LogLine: Sendable {
  var time: UnixTime
  var level: Logger.Level
  /// The logger's label, such as `fanfare.worker`.
  let logger: String
  /// Constant text.
  let message: String
  /// The data, sorted by key.
  let metadata: [(key: String, value: Logger.MetadataValue)]
  /// Set in a line that stands for others: their number, and the time in which they came.
  var repetition: (count: Int, within: Duration)?

  init(
    time: UnixTime, level: Logger.Level, logger: String, message: String, metadata: Logger.Metadata = [:]
  ) {
    (self.time, self.level, self.logger, self.message) = (time, level, logger, message)
    self.metadata = metadata.map { ($0.key, $0.value) }.sorted { $0.key < $1.key }
  }
}

/// The form of a log line. It is one line in every form: line ends and control characters are escaped.
///
/// The time (UTC, milliseconds), the level and the message come first, then the data sorted by key.
package enum LogFormat: String, CaseIterable, Sendable {
  /// For a terminal: the message stands in a column of its own.
  case text
  /// `key=value` pairs: `time=… level=… msg=…`.
  case logfmt
  /// A JSON object: `{"time":…,"level":…,"msg":…}`.
  case json

  /// The members of every line, which no data may replace.
  private static let reserved: Set<String> = ["time", "level", "msg", "logger", "repeated", "seconds"]

  /// The bytes of the line, with its end.
  func bytes(of line: LogLine) -> [UInt8] {
    switch self {
    case .text: Array((Self.text(line) + "\n").utf8)
    case .logfmt: Array((Self.logfmt(line) + "\n").utf8)
    case .json: Array((Self.json(line) + "\n").utf8)
    }
  }

  private static func text(_ line: LogLine) -> String {
    let level = line.level.rawValue
    var text = "\(line.time) \(level)" + String(repeating: " ", count: max(1, 9 - level.count))
    text += Printable.line(line.message)
    if let repetition = line.repetition {
      text += " (repeated \(repetition.count) times in \(repetition.within.components.seconds) s)"
    }
    for (key, value) in line.metadata { text += " " + pair(key, "\(value)") }
    return text + " " + pair("logger", line.logger)
  }

  private static func logfmt(_ line: LogLine) -> String {
    var text = "time=\(line.time) level=\(line.level) " + pair("msg", line.message)
    if let repetition = line.repetition {
      text += " repeated=\(repetition.count) seconds=\(repetition.within.components.seconds)"
    }
    text += " " + pair("logger", line.logger)
    for (key, value) in line.metadata { text += " " + pair(member(key), "\(value)") }
    return text
  }

  private static func json(_ line: LogLine) -> String {
    let bytes = JSONWriter.object { json in
      json.member("time", line.time.description)
      json.member("level", line.level.rawValue)
      json.member("msg", line.message)
      if let repetition = line.repetition {
        json.member("repeated", repetition.count)
        json.member("seconds", repetition.within.components.seconds)
      }
      json.member("logger", line.logger)
      for (key, value) in line.metadata { json.member(named: member(key), JSONMetadata(value: value)) }
    }
    return Printable.json(String(decoding: bytes, as: UTF8.self))
  }

  private static func member(_ key: String) -> String { reserved.contains(key) ? key + "_" : key }

  /// `key=value`; the value is in quotes, with JSON's escapes, unless it is one word.
  private static func pair(_ key: String, _ value: String) -> String {
    let key = String(key.map { $0.isASCII && ($0.isLetter || $0.isNumber || "_.-".contains($0)) ? $0 : "_" })
    let isWord = !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !#""=\"#.utf8.contains($0) }
    if isWord { return "\(key)=\(value)" }
    return "\(key)=" + Printable.json(String(decoding: JSONWriter.bytes(of: value), as: UTF8.self))
  }
}

/// A value of log metadata as JSON; arrays and dictionaries keep their structure.
private struct JSONMetadata: JSONWritable {
  let value: Logger.MetadataValue

  func write(to json: inout JSONWriter) {
    switch value {
    case .array(let elements):
      json.array { json in for element in elements { json.element(Self(value: element)) } }
    case .dictionary(let members):
      json.object { json in
        for (key, value) in members.sorted(by: { $0.key < $1.key }) { json.member(named: key, Self(value: value)) }
      }
    default: "\(value)".write(to: &json)
    }
  }
}
