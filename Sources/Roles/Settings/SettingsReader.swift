package import Configuration
import FanfareCore
import FoundationEssentials
import Synchronization

/// Reads typed values by key; every problem becomes an error that names the key.
///
/// ``collect(_:)`` finds all mistakes of a section: it reads it again as if the keys with known mistakes were absent.
///
/// swift-configuration treats a value of the wrong type as absent and reports it only to its access reporter. So this
/// type is also the access reporter, and it learns from the reports which keys exist.
package final class SettingsReader: AccessReporter {
  /// The report on a key.
  private struct Heard {
    /// The conversion error, if any.
    var failure: (any Error)?
    /// The index of the first provider that has a value; nil if none has.
    var level: Int?
  }

  /// The reports by key, as the file writes the key.
  private let heard = Mutex<[String: Heard]>([:])

  /// The mistakes found so far. Their keys read as absent.
  private let found = Mutex<(mistakes: [SettingsMistake], keys: Set<String>)>(([], []))

  /// The providers in order of precedence.
  private let providers: [any ConfigProvider]

  init(providers: [any ConfigProvider]) {
    self.providers = providers
  }

  /// The keys that were read so far.
  var keys: Set<String> { Set(heard.withLock(\.keys)) }

  /// The mistakes found so far.
  var mistakes: [SettingsMistake] { found.withLock(\.mistakes) }

  /// Adds a mistake, and reads its key as absent from now on. Returns false if the key has one already.
  @discardableResult func note(_ mistake: SettingsMistake) -> Bool {
    found.withLock { found in
      guard found.keys.insert(mistake.key).inserted else { return false }
      found.mistakes.append(mistake)
      return true
    }
  }

  /// Reads a section of the configuration, and notes all of its mistakes.
  ///
  /// After a mistake it runs `body` again, with the mistaken key absent, to find the next one. Returns nil if `body`
  /// does not succeed without the key, because another key requires it.
  func collect<Value>(_ body: () throws(SettingsError) -> Value) -> Value? {
    while true {
      do { return try body() } catch {
        guard error.mistakes.count(where: { note($0) }) > 0 else { return nil }
      }
    }
  }

  package func report(_ event: AccessEvent) {
    let key = event.metadata.key.components.joined(separator: ".")
    var heard = Heard(failure: event.conversionError)
    for (level, provider) in event.providerResults.enumerated() {
      switch provider.result {
      case .failure(let error): heard.failure = error
      case .success(let found): if found.value != nil, heard.level == nil { heard.level = level }
      }
    }
    self.heard.withLock { [heard] in $0[key] = heard }
  }

  /// Text that is not empty, or `fallback` if absent.
  package func string(_ key: String, default fallback: String) throws(SettingsError) -> String {
    try optionalString(key) ?? fallback
  }

  /// Text that must be present. The error contains `expectation`.
  package func requiredString(_ key: String, _ expectation: String) throws(SettingsError) -> String {
    guard let value = try optionalString(key) else { throw SettingsError(key, "is missing: \(expectation)") }
    return value
  }

  /// Text that is not empty; nil if absent.
  package func optionalString(_ key: String) throws(SettingsError) -> String? {
    let value = config(key).string(forKey: ConfigKey(key))
    try check(key, "must be text (in quotes if it looks like a number)", showsValue: false)
    guard value?.isEmpty != true else { throw SettingsError(key, "must not be empty") }
    return value
  }

  /// The texts of two mutually exclusive keys, one of them nil.
  ///
  /// The environment's value of either key overrides the file's values of both.
  func oneOf(_ first: String, _ second: String) throws(SettingsError) -> (first: String?, second: String?) {
    let values = (first: try optionalString(first), second: try optionalString(second))
    let levels = heard.withLock { ($0[first]?.level, $0[second]?.level) }
    guard let one = levels.0, let other = levels.1 else { return values }
    guard one != other else { throw SettingsError(first, "must not be given together with \(second)") }
    return one < other ? (values.first, nil) : (nil, values.second)
  }

  /// A list of texts; the environment separates them by commas.
  func strings(_ key: String, default fallback: [String] = []) throws(SettingsError) -> [String] {
    let value = config(key).stringArray(forKey: ConfigKey(key))
    try check(key, "must be a list of texts", showsValue: false)
    return value ?? fallback
  }

  /// A list of texts of the form `key=value`.
  func pairs(_ key: String) throws(SettingsError) -> [String: String] {
    var pairs: [String: String] = [:]
    for pair in try strings(key) {
      guard let sign = pair.firstIndex(of: "="), sign > pair.startIndex else {
        throw SettingsError(key, "must be a list of texts of the form key=value")
      }
      pairs[String(pair[..<sign])] = String(pair[pair.index(after: sign)...])
    }
    return pairs
  }

  /// A list of whole numbers within limits.
  func ints(_ key: String, default fallback: [Int], in range: ClosedRange<Int>, atMost count: Int) throws(SettingsError)
    -> [Int]
  {
    let value = config(key).intArray(forKey: ConfigKey(key))
    let expectation = "must be a list of at most \(count) whole numbers from \(range.lowerBound) to \(range.upperBound)"
    try check(key, expectation)
    guard let value else { return fallback }
    guard value.count <= count, value.allSatisfy(range.contains) else { throw SettingsError(key, expectation) }
    return value
  }

  /// A whole number within limits.
  package func int(_ key: String, default fallback: Int, in range: ClosedRange<Int>) throws(SettingsError) -> Int {
    let value = config(key).int(forKey: ConfigKey(key))
    let expectation = "must be a whole number from \(range.lowerBound) to \(range.upperBound)"
    try check(key, expectation)
    guard let value else { return fallback }
    guard range.contains(value) else { throw SettingsError(key, expectation, showsValue: true) }
    return value
  }

  /// A time in seconds within limits, fractions allowed.
  func seconds(_ key: String, default fallback: Double, in range: ClosedRange<Double>) throws(SettingsError) -> Duration
  {
    let value = config(key).double(forKey: ConfigKey(key))
    let expectation = "must be a number of seconds from \(range.lowerBound) to \(range.upperBound)"
    try check(key, expectation)
    guard range.contains(value ?? fallback) else { throw SettingsError(key, expectation, showsValue: true) }
    return .milliseconds(Int64(clamping: ((value ?? fallback) * 1000).rounded()))
  }

  /// A fraction from 0 to 1.
  func share(_ key: String, default fallback: Double) throws(SettingsError) -> Double {
    let value = config(key).double(forKey: ConfigKey(key))
    let expectation = "must be a number from 0 to 1"
    try check(key, expectation)
    guard (0...1).contains(value ?? fallback) else { throw SettingsError(key, expectation, showsValue: true) }
    return value ?? fallback
  }

  /// `true` or `false`.
  package func bool(_ key: String, default fallback: Bool) throws(SettingsError) -> Bool {
    let value = config(key).bool(forKey: ConfigKey(key))
    try check(key, "must be true or false")
    return value ?? fallback
  }

  /// One of a few words.
  func choice<Choice: RawRepresentable & CaseIterable>(_ key: String, default fallback: Choice) throws(SettingsError)
    -> Choice
  where Choice.RawValue == String {
    try choice(key, default: fallback as Choice?, orNothing: []) ?? fallback
  }

  /// One of a few words, or `none`; nil if it is that or absent.
  func choiceOrNone<Choice: RawRepresentable & CaseIterable>(_ key: String) throws(SettingsError) -> Choice?
  where Choice.RawValue == String {
    try choice(key, default: nil, orNothing: ["none"])
  }

  private func choice<Choice: RawRepresentable & CaseIterable>(
    _ key: String, default fallback: Choice?, orNothing nothing: [String]
  ) throws(SettingsError) -> Choice? where Choice.RawValue == String {
    guard let word = try optionalString(key) else { return fallback }
    guard !nothing.contains(word) else { return nil }
    guard let choice = Choice(rawValue: word) else {
      let words = Choice.allCases.map(\.rawValue) + nothing
      throw SettingsError(key, "must be one of " + words.joined(separator: ", "), showsValue: true)
    }
    return choice
  }

  /// The text of the file that a key names; nil if the key is absent.
  ///
  /// Private keys, certificates and secrets come only from files.
  func contents(ofFileAt key: String) throws(SettingsError) -> String? {
    guard let path = try optionalString(key) else { return nil }
    return try Self.contents(of: path, key: key)
  }

  /// The text of the file at the path that the key names.
  static func contents(of path: String, key: String) throws(SettingsError) -> String {
    let data: Data
    do { data = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
      throw SettingsError(key, "names a file that cannot be read: \(path)")
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      throw SettingsError(key, "names a file that is not text: \(path)")
    }
    return text
  }

  private func config(_ key: String) -> ConfigReader {
    let isMistaken = found.withLock { $0.keys.contains(key) }
    return ConfigReader(providers: isMistaken ? [InMemoryProvider(values: [:])] : providers, accessReporter: self)
  }

  /// Throws if the value could not be converted.
  private func check(_ key: String, _ expectation: String, showsValue: Bool = true) throws(SettingsError) {
    if heard.withLock({ $0[key]?.failure }) != nil { throw SettingsError(key, expectation, showsValue: showsValue) }
  }
}
