package import Configuration
import FanfareCore
import FoundationEssentials
import Synchronization

/// Reads typed values by key, and makes of everything that is wrong with one an error that names it.
///
/// swift-configuration passes over a value of the wrong type as if it were absent and tells only its access reporter;
/// so this is its access reporter too. What it heard also tells which keys exist at all.
package final class SettingsReader: AccessReporter {
  /// What became of a key that was asked for.
  private struct Heard {
    /// What was wrong with its value.
    var failure: (any Error)?
    /// Which provider has it, the lowest going over the others; nil where none has.
    var level: Int?
  }

  /// Every key that was asked for, as the file writes it.
  private let heard = Mutex<[String: Heard]>([:])

  /// The reader over the given providers, first one wins; set once by `init`, because the configuration reader wants
  /// its reporter first.
  private let providers: [any ConfigProvider]

  init(providers: [any ConfigProvider]) {
    self.providers = providers
  }

  /// The keys that were asked for so far.
  var keys: Set<String> { Set(heard.withLock(\.keys)) }

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

  /// Text that is not empty; `fallback` where there is none.
  package func string(_ key: String, default fallback: String) throws(SettingsError) -> String {
    try optionalString(key) ?? fallback
  }

  /// Text that must be there. `expectation` says what it is for.
  package func requiredString(_ key: String, _ expectation: String) throws(SettingsError) -> String {
    guard let value = try optionalString(key) else { throw SettingsError(key, "is missing: \(expectation)") }
    return value
  }

  /// Text that is not empty; nil where there is none.
  package func optionalString(_ key: String) throws(SettingsError) -> String? {
    let value = config.string(forKey: ConfigKey(key))
    try check(key, "must be text (in quotes if it looks like a number)")
    guard value?.isEmpty != true else { throw SettingsError(key, "must not be empty") }
    return value
  }

  /// Text under one of two keys that exclude each other; the other one's is nil. The environment's word under either
  /// goes over the file's under both.
  func oneOf(_ first: String, _ second: String) throws(SettingsError) -> (first: String?, second: String?) {
    let values = (first: try optionalString(first), second: try optionalString(second))
    let levels = heard.withLock { ($0[first]?.level, $0[second]?.level) }
    guard let one = levels.0, let other = levels.1 else { return values }
    guard one != other else { throw SettingsError(first, "must not be given together with \(second)") }
    return one < other ? (values.first, nil) : (nil, values.second)
  }

  /// A list of texts; in the environment separated by commas.
  func strings(_ key: String, default fallback: [String] = []) throws(SettingsError) -> [String] {
    let value = config.stringArray(forKey: ConfigKey(key))
    try check(key, "must be a list of texts")
    return value ?? fallback
  }

  /// A list of whole numbers within limits.
  func ints(_ key: String, default fallback: [Int], in range: ClosedRange<Int>, atMost count: Int) throws(SettingsError)
    -> [Int]
  {
    let value = config.intArray(forKey: ConfigKey(key))
    let expectation = "must be a list of at most \(count) whole numbers from \(range.lowerBound) to \(range.upperBound)"
    try check(key, expectation)
    guard let value else { return fallback }
    guard value.count <= count, value.allSatisfy(range.contains) else { throw SettingsError(key, expectation) }
    return value
  }

  /// A whole number within limits.
  package func int(_ key: String, default fallback: Int, in range: ClosedRange<Int>) throws(SettingsError) -> Int {
    let value = config.int(forKey: ConfigKey(key))
    let expectation = "must be a whole number from \(range.lowerBound) to \(range.upperBound)"
    try check(key, expectation)
    guard let value else { return fallback }
    guard range.contains(value) else { throw SettingsError(key, expectation) }
    return value
  }

  /// A time in seconds within limits, fractions allowed.
  func seconds(_ key: String, default fallback: Double, in range: ClosedRange<Double>) throws(SettingsError) -> Duration
  {
    let value = config.double(forKey: ConfigKey(key))
    let expectation = "must be a number of seconds from \(range.lowerBound) to \(range.upperBound)"
    try check(key, expectation)
    guard range.contains(value ?? fallback) else { throw SettingsError(key, expectation) }
    return .milliseconds(Int64(((value ?? fallback) * 1000).rounded()))
  }

  /// A share from 0 to 1.
  func share(_ key: String, default fallback: Double) throws(SettingsError) -> Double {
    let value = config.double(forKey: ConfigKey(key))
    try check(key, "must be a number from 0 to 1")
    guard (0...1).contains(value ?? fallback) else { throw SettingsError(key, "must be a number from 0 to 1") }
    return value ?? fallback
  }

  /// `true` or `false`.
  package func bool(_ key: String, default fallback: Bool) throws(SettingsError) -> Bool {
    let value = config.bool(forKey: ConfigKey(key))
    try check(key, "must be true or false")
    return value ?? fallback
  }

  /// One of a few words.
  func choice<Choice: RawRepresentable & CaseIterable>(_ key: String, default fallback: Choice) throws(SettingsError)
    -> Choice
  where Choice.RawValue == String {
    guard let word = try optionalString(key) else { return fallback }
    guard let choice = Choice(rawValue: word) else {
      throw SettingsError(key, "must be one of " + Choice.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return choice
  }

  /// The text of a file that another key names; nil where the key is absent. For keys, certificates and secrets, which
  /// come only from files.
  func contents(ofFileAt key: String) throws(SettingsError) -> String? {
    guard let path = try optionalString(key) else { return nil }
    return try Self.contents(of: path, key: key)
  }

  /// The text of the file at a path that the given key names.
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

  private var config: ConfigReader { ConfigReader(providers: providers, accessReporter: self) }

  private func check(_ key: String, _ expectation: String) throws(SettingsError) {
    if heard.withLock({ $0[key]?.failure }) != nil { throw SettingsError(key, expectation) }
  }
}
