import FanfareCore
import FoundationEssentials

/// Reads typed values by key; every problem becomes an error that names the key.
///
/// ``collect(_:)`` finds all mistakes of a section: it reads it again as if the keys with known mistakes were absent.
package final class SettingsReader {
  /// The sources in order of precedence.
  private let sources: [SettingsSource]

  /// The keys of the sections that were read so far.
  package internal(set) var keys: Set<String> = []

  /// The keys of earlier versions, each with what holds now.
  package internal(set) var retired: [String: String] = [:]

  /// A mistake for each key of an earlier version that a source has.
  package var retiredMistakes: [SettingsMistake] {
    retired.sorted { $0.key < $1.key }.filter { level(of: $0.key) != nil }.map { key, words in
      SettingsMistake(key: key, expectation: "is no key any more: \(words)")
    }
  }

  /// The mistakes found so far.
  package private(set) var mistakes: [SettingsMistake] = []

  /// The keys of the mistakes, which read as absent.
  private var mistaken: Set<String> = []

  package init(_ sources: [SettingsSource]) {
    self.sources = sources
  }

  /// Adds a mistake, and reads its key as absent from now on. Returns false if the key has one already.
  @discardableResult package func note(_ mistake: SettingsMistake) -> Bool {
    guard mistaken.insert(mistake.key).inserted else { return false }
    mistakes.append(mistake)
    return true
  }

  /// Reads a section of the configuration, and notes all of its mistakes.
  ///
  /// After a mistake it runs `body` again, with the mistaken key absent, to find the next one. Returns nil if `body`
  /// does not succeed without the key, because another key requires it.
  package func collect<Value>(_ body: () throws(SettingsError) -> Value) -> Value? {
    while true {
      do { return try body() } catch {
        guard error.mistakes.count(where: { note($0) }) > 0 else { return nil }
      }
    }
  }

  /// Text that is not empty; nil if absent, as with the functions below.
  func string(_ key: String) throws(SettingsError) -> String? {
    let value = try value(key, \.text, "must be text (in quotes if it looks like a number)", showsValue: false)
    guard value?.isEmpty != true else { throw SettingsError(key, "must not be empty") }
    return value
  }

  /// The texts of two mutually exclusive keys, one of them nil.
  ///
  /// The environment's value of either key overrides the file's values of both.
  package func oneOf(_ first: String, _ second: String) throws(SettingsError) -> (first: String?, second: String?) {
    let values = (first: try string(first), second: try string(second))
    guard let one = level(of: first), let other = level(of: second) else { return values }
    guard one != other else { throw SettingsError(first, "must not be given together with \(second)") }
    return one < other ? (values.first, nil) : (nil, values.second)
  }

  /// A list of texts.
  func strings(_ key: String) throws(SettingsError) -> [String]? {
    try value(key, \.texts, "must be a list of texts", showsValue: false)
  }

  /// A list of texts of the form `key=value`.
  func pairs(_ key: String) throws(SettingsError) -> [String: String]? {
    guard let texts = try strings(key) else { return nil }
    var pairs: [String: String] = [:]
    for pair in texts {
      guard let sign = pair.firstIndex(of: "="), sign > pair.startIndex else {
        throw SettingsError(key, "must be a list of texts of the form key=value")
      }
      pairs[String(pair[..<sign])] = String(pair[pair.index(after: sign)...])
    }
    return pairs
  }

  /// A list of whole numbers within limits.
  func ints(_ key: String, in range: ClosedRange<Int>, atMost count: Int) throws(SettingsError) -> [Int]? {
    let expectation = "must be a list of at most \(count) whole numbers from \(range.lowerBound) to \(range.upperBound)"
    guard let value = try value(key, \.wholes, expectation) else { return nil }
    guard value.count <= count, value.allSatisfy(range.contains) else { throw SettingsError(key, expectation) }
    return value
  }

  /// A whole number within limits.
  func int(_ key: String, in range: ClosedRange<Int>) throws(SettingsError) -> Int? {
    try value(key, \.whole, "must be a whole number from \(range.lowerBound) to \(range.upperBound)", range.contains)
  }

  /// A time in seconds within limits, fractions allowed.
  func seconds(_ key: String, in range: ClosedRange<Double>) throws(SettingsError) -> Duration? {
    let expectation = "must be a number of seconds from \(range.lowerBound) to \(range.upperBound)"
    return try value(key, \.number, expectation, range.contains)
      .map { .milliseconds(Int64(clamping: ($0 * 1000).rounded())) }
  }

  /// A fraction from 0 to 1.
  func share(_ key: String) throws(SettingsError) -> Double? {
    try value(key, \.number, "must be a number from 0 to 1", (0...1).contains)
  }

  /// `true` or `false`.
  func bool(_ key: String) throws(SettingsError) -> Bool? { try value(key, \.truth, "must be true or false") }

  /// One of a few words; nil also for the word that stands for nothing.
  func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ key: String, orNothing nothing: String? = nil
  ) throws(SettingsError) -> Choice? {
    guard let word = try string(key), word != nothing else { return nil }
    guard let choice = Choice(rawValue: word) else {
      let words = Choice.allCases.map(\.rawValue) + [nothing].compactMap(\.self)
      throw SettingsError(key, "must be one of " + words.joined(separator: ", "), showsValue: true)
    }
    return choice
  }

  /// The text of the file that a key names; nil if the key is absent.
  ///
  /// Private keys, certificates and secrets come only from files.
  func contents(ofFileAt key: String) throws(SettingsError) -> String? {
    guard let path = try string(key) else { return nil }
    return try Self.contents(of: path, key: key)
  }

  /// The text of the file at the path that the key names.
  package static func contents(of path: String, key: String) throws(SettingsError) -> String {
    let data: Data
    do { data = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
      throw SettingsError(key, "names a file that cannot be read: \(path)")
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      throw SettingsError(key, "names a file that is not text: \(path)")
    }
    return text
  }

  /// The index of the first source that has the key; nil if none has.
  private func level(of key: String) -> Int? {
    mistaken.contains(key) ? nil : sources.firstIndex { $0.value(key) != nil }
  }

  /// The key's value in one of its forms; nil if absent. Throws if it does not have the form.
  private func value<Value>(
    _ key: String, _ form: KeyPath<SettingsValue, Value?>, _ expectation: String, showsValue: Bool = true,
    _ isUsable: (Value) -> Bool = { _ in true }
  ) throws(SettingsError) -> Value? {
    guard let level = level(of: key), let value = sources[level].value(key) else { return nil }
    guard let value = value[keyPath: form], isUsable(value) else {
      throw SettingsError(key, expectation, showsValue: showsValue)
    }
    return value
  }
}
