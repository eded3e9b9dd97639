import Synchronization

/// One configuration key: its values, default and meaning. The property's name is the key's.
///
/// The properties of a section's keys have it as the options of a command have `@Option`; see ``SettingsSection``. The
/// file `deploy/fanfare.yaml` and the reference of all keys are made from these declarations.
///
///     struct Keys: Sendable {
///       @Setting(in: 0...65535, "0: the kernel chooses") var port = 8080
///       @Setting(example: "/etc/fanfare/groups", "the groups of the users") var groupFile: String?
///     }
///
/// The last argument is a phrase without a full stop. A key without a default has an example.
///
/// A key of another target's structure names the property that it fills, which is also its default; see
/// ``SettingsReader/read(_:of:into:)``:
///
///     @Setting(standard, \.limits.maximumRecords, in: 1...262_144, "records fetched and not yet settled")
///     var maximumRecords
@propertyWrapper
package struct Setting<Value: Sendable>: Sendable {
  typealias Reading = @Sendable (SettingsReader, _ key: String, _ fallback: Value) throws(SettingsError) -> Value

  /// Reading a section sets it: until then it is the default. Copies of the keys share it.
  private final class Box: Sendable {
    let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
  }

  private let box: Box
  let forms: String
  let summary: String
  private(set) var example: String?
  private(set) var isGiven = false
  /// The property that the value fills, of the structure with the default.
  private var filled: (any AnyKeyPath & Sendable)?
  private let yaml: @Sendable (Value) -> String?
  private let reading: Reading

  package var wrappedValue: Value { box.value.withLock { $0 } }

  /// `forms` are the values that the key takes, in words; `yaml` writes one of them.
  private init(
    _ standard: Value, _ forms: String, _ summary: String, yaml: @escaping @Sendable (Value) -> String?,
    reading: @escaping Reading
  ) {
    (box, self.forms, self.summary, self.yaml, self.reading) = (Box(standard), forms, summary, yaml, reading)
  }
}

/// A key of any type.
protocol DeclaredSetting {
  var forms: String { get }
  var summary: String { get }
  var example: String? { get }
  var isGiven: Bool { get }
  /// The value as YAML; nil if there is none.
  var text: String? { get }
  func read(_ key: String, from reader: SettingsReader) throws(SettingsError)
  /// Sets the property that the key fills, if the structure has it.
  func fill<Root>(_ root: inout Root)
}

extension Setting: DeclaredSetting {
  var text: String? { yaml(wrappedValue) }

  func read(_ key: String, from reader: SettingsReader) throws(SettingsError) {
    let value = try reading(reader, key, wrappedValue)
    box.value.withLock { $0 = value }
  }

  func fill<Root>(_ root: inout Root) {
    if let path = filled as? WritableKeyPath<Root, Value> { root[keyPath: path] = wrappedValue }
  }
}

extension Setting where Value == Int {
  package init(wrappedValue: Int, in range: ClosedRange<Int>, _ summary: String) {
    self.init(wrappedValue, "\(range.lowerBound)…\(range.upperBound)", summary, yaml: { "\($0)" }) {
      (reader, key, fallback) throws(SettingsError) in try reader.int(key, in: range) ?? fallback
    }
  }

  package init<Root>(
    _ standard: Root, _ path: any WritableKeyPath<Root, Int> & Sendable, in range: ClosedRange<Int>, _ summary: String
  ) {
    self.init(wrappedValue: standard[keyPath: path], in: range, summary)
    filled = path
  }
}

extension Setting where Value == Int? {
  package init(in range: ClosedRange<Int>, example: Int, _ summary: String) {
    self.init(nil, "\(range.lowerBound)…\(range.upperBound)", summary, yaml: { $0.map { "\($0)" } }) {
      (reader, key, _) throws(SettingsError) in try reader.int(key, in: range)
    }
    self.example = "\(example)"
  }
}

extension Setting where Value == [Int] {
  package init(wrappedValue: [Int], in range: ClosedRange<Int>, atMost count: Int, _ summary: String) {
    let forms = "at most \(count) of \(range.lowerBound)…\(range.upperBound)"
    self.init(wrappedValue, forms, summary, yaml: { "[\($0.map(String.init).joined(separator: ", "))]" }) {
      (reader, key, fallback) throws(SettingsError) in try reader.ints(key, in: range, atMost: count) ?? fallback
    }
  }
}

extension Setting where Value == Duration {
  /// A time in seconds, fractions allowed.
  package init(wrappedValue: Duration, in range: ClosedRange<Double>, _ summary: String) {
    let forms = "\(plain(range.lowerBound))…\(plain(range.upperBound)) seconds"
    self.init(wrappedValue, forms, summary, yaml: { plain($0 / .seconds(1)) }) {
      (reader, key, fallback) throws(SettingsError) in try reader.seconds(key, in: range) ?? fallback
    }
  }

  package init<Root>(
    _ standard: Root, _ path: any WritableKeyPath<Root, Duration> & Sendable, in range: ClosedRange<Double>,
    _ summary: String
  ) {
    self.init(wrappedValue: standard[keyPath: path], in: range, summary)
    filled = path
  }

  /// A time in whole days.
  package init<Root>(
    _ standard: Root, _ path: any WritableKeyPath<Root, Duration> & Sendable, days range: ClosedRange<Int>,
    _ summary: String
  ) {
    let forms = "\(range.lowerBound)…\(range.upperBound)"
    self.init(standard[keyPath: path], forms, summary, yaml: { "\($0.components.seconds / 86_400)" }) {
      (reader, key, fallback) throws(SettingsError) in
      try reader.int(key, in: range).map { .seconds(86_400 * $0) } ?? fallback
    }
    filled = path
  }
}

extension Setting where Value == Double {
  /// A fraction from 0 to 1.
  package init(wrappedValue: Double, _ summary: String) {
    self.init(wrappedValue, "0…1", summary, yaml: plain) {
      (reader, key, fallback) throws(SettingsError) in try reader.share(key) ?? fallback
    }
  }

  package init<Root>(_ standard: Root, _ path: any WritableKeyPath<Root, Double> & Sendable, _ summary: String) {
    self.init(wrappedValue: standard[keyPath: path], summary)
    filled = path
  }
}

extension Setting where Value == Bool {
  package init(wrappedValue: Bool, _ summary: String) {
    self.init(wrappedValue, "true, false", summary, yaml: { "\($0)" }) {
      (reader, key, fallback) throws(SettingsError) in try reader.bool(key) ?? fallback
    }
  }
}

extension Setting where Value == Bool? {
  package init(example: Bool, _ summary: String) {
    self.init(nil, "true, false", summary, yaml: { $0.map { "\($0)" } }) {
      (reader, key, _) throws(SettingsError) in try reader.bool(key)
    }
    self.example = "\(example)"
  }
}

extension Setting where Value == String {
  package init(wrappedValue: String, _ summary: String) {
    self.init(wrappedValue, "text", summary, yaml: { $0 }) {
      (reader, key, fallback) throws(SettingsError) in try reader.string(key) ?? fallback
    }
  }

  package init<Root>(_ standard: Root, _ path: any WritableKeyPath<Root, String> & Sendable, _ summary: String) {
    self.init(wrappedValue: standard[keyPath: path], summary)
    filled = path
  }
}

extension Setting where Value == String? {
  /// A text or the path of a file. The example file sets it if `isGiven`.
  package init(example: String, isGiven: Bool = false, _ summary: String) {
    self.init(nil, "text", summary, yaml: { $0 }) {
      (reader, key, _) throws(SettingsError) in try reader.string(key)
    }
    (self.example, self.isGiven) = (example, isGiven)
  }

  /// The text of a file that the key names.
  package init(contents example: String, _ summary: String) {
    self.init(nil, "file", summary, yaml: { $0 }) {
      (reader, key, _) throws(SettingsError) in try reader.contents(ofFileAt: key)
    }
    self.example = example
  }
}

extension Setting where Value == SecretFile? {
  /// A file with a secret. Passwords, keys and tokens come only from such files.
  package init(example: String, _ summary: String) {
    self.init(nil, "secret file", summary, yaml: { $0?.path }) {
      (reader, key, _) throws(SettingsError) in try reader.secretFile(at: key)
    }
    self.example = example
  }
}

extension Setting where Value == [String] {
  package init(wrappedValue: [String], _ summary: String) {
    self.init(wrappedValue, "list", summary, yaml: list) {
      (reader, key, fallback) throws(SettingsError) in try reader.strings(key) ?? fallback
    }
  }
}

extension Setting where Value == [String: String] {
  /// A list of texts of the form `key=value`.
  package init(wrappedValue: [String: String], _ summary: String) {
    self.init(wrappedValue, "list of key=value", summary, yaml: { list($0.map { "\($0)=\($1)" }.sorted()) }) {
      (reader, key, fallback) throws(SettingsError) in try reader.pairs(key) ?? fallback
    }
  }
}

extension Setting where Value: RawRepresentable<String> & CaseIterable {
  /// One of a few words.
  package init(wrappedValue: Value, _ summary: String) {
    self.init(wrappedValue, words(Value.self), summary, yaml: { $0.rawValue }) {
      (reader, key, fallback) throws(SettingsError) in try reader.choice(key) ?? fallback
    }
  }
}

extension Setting {
  /// One of a few words. Its default depends on other keys, or it is `nothing`.
  package init<Choice: RawRepresentable<String> & CaseIterable>(
    example: Choice? = nil, orNothing nothing: String? = nil, _ summary: String
  ) where Value == Choice? {
    let forms = ([words(Choice.self)] + [nothing].compactMap(\.self)).joined(separator: ", ")
    self.init(nil, forms, summary, yaml: { $0?.rawValue ?? nothing }) {
      (reader, key, _) throws(SettingsError) in try reader.choice(key, orNothing: nothing)
    }
    self.example = example?.rawValue
  }
}

private func words<Choice: RawRepresentable<String> & CaseIterable>(_ type: Choice.Type) -> String {
  type.allCases.map(\.rawValue).joined(separator: ", ")
}

/// A list as YAML. Texts with a colon are in quotes.
@Sendable private func list(_ texts: [String]) -> String {
  "[\(texts.map { $0.contains(":") ? "\"\($0)\"" : $0 }.joined(separator: ", "))]"
}

/// A number without a fraction of zero.
@Sendable private func plain(_ number: Double) -> String {
  let text = "\(number)"
  return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
}
