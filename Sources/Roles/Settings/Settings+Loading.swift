import Configuration
import FanfareCore
import FoundationEssentials

extension Settings {
  /// Loads the file, if any. Environment variables override its values.
  ///
  /// `readFurther` reads the keys that only the calling program has. Throws one `SettingsError` with all mistakes; an
  /// unknown key of the file is one. Collects unknown variables in `unknownVariables`.
  package static func load(
    file path: String?, environment: [String: String],
    readFurther: (SettingsReader) throws(SettingsError) -> Void = { _ in }
  ) async throws -> Settings {
    let reading = try await read(file: path, environment: environment, readFurther: readFurther)
    if let error = SettingsError(reading.mistakes) { throw error }
    guard var settings = reading.settings else { preconditionFailure("the settings failed without a mistake") }
    settings.unknownVariables = reading.unknownVariables
    return settings
  }

  /// What was read, and what is wrong with it.
  struct Reading {
    /// Nil if there are mistakes.
    var settings: Settings?
    /// In the order of the file.
    var mistakes: [SettingsMistake]
    /// The variables with the program's prefix that match no key, sorted, each with the nearest known one.
    var unknownVariables: [String]
  }

  /// Reads the configuration as ``load(file:environment:readFurther:)`` does. Throws for a file that is no YAML mapping.
  static func read(
    file path: String?, environment: [String: String],
    readFurther: (SettingsReader) throws(SettingsError) -> Void = { _ in }
  ) async throws -> Reading {
    let spelt = Dictionary(environment.map { (spelling(of: $0.key), $0.value) }) { first, _ in first }
    var providers: [any ConfigProvider] = [
      EnvironmentVariablesProvider(environmentVariables: spelt).prefixKeys(with: "fanfare")
    ]
    var file: SettingsFile?
    if let path { file = try SettingsFile(path: path) }
    if let file, !file.entries.isEmpty {
      let path = InMemoryProvider(values: ["filePath": ConfigValue(.string(file.path), isSecret: false)])
      do { providers.append(try await FileProvider<YAMLSnapshot>(config: ConfigReader(provider: path))) } catch {
        // The provider does not read a file with a value of the wrong shape.
        throw SettingsError(placed(file.mistakes, file: file, environment: environment))
          ?? SettingsFile.notYAML(file.path, error)
      }
    }
    let reader = SettingsReader(providers: providers)
    for mistake in file?.mistakes ?? [] { reader.note(mistake) }
    let settings = reader.collect { () throws(SettingsError) in try Settings(from: reader) }
    _ = reader.collect { () throws(SettingsError) in try readFurther(reader) }
    let known = reader.mistakes.isEmpty ? reader.keys : reader.keys.union(keys(readFurther))
    for mistake in unknownKeys(of: file, known: known, mistakes: reader.mistakes) { reader.note(mistake) }
    return Reading(
      settings: settings, mistakes: placed(reader.mistakes, file: file, environment: environment),
      unknownVariables: unknownVariables(of: environment, known: known))
  }

  /// The keys that are read if none is given.
  ///
  /// A section that ends with a mistake does not read its other keys, and these are known nevertheless.
  private static func keys(_ readFurther: (SettingsReader) throws(SettingsError) -> Void) -> Set<String> {
    let reader = SettingsReader(providers: [InMemoryProvider(values: [:])])
    _ = reader.collect { () throws(SettingsError) in try Settings(from: reader) }
    _ = reader.collect { () throws(SettingsError) in try readFurther(reader) }
    return reader.keys
  }

  private static func unknownKeys(
    of file: SettingsFile?, known: Set<String>, mistakes: [SettingsMistake]
  ) -> [SettingsMistake] {
    let mistaken = Set(mistakes.map(\.key))
    return (file?.entries.keys.sorted() ?? []).compactMap { key in
      guard !known.contains(key), !mistaken.contains(key) else { return nil }
      // Without the names of the hubs their keys are not known either.
      guard !mistaken.contains("hubs") || !key.hasPrefix("hub.") else { return nil }
      let hint = NearestName.of(key, among: known).map { "\($0) is the nearest one" }
      return SettingsMistake(
        key: key, expectation: "is not a known key; \(hint ?? "deploy/fanfare.yaml lists all keys")")
    }
  }

  private static func unknownVariables(of environment: [String: String], known: Set<String>) -> [String] {
    let variables = Set(known.map(variable)).union(["FANFARE_CONFIG"])
    let unknown = environment.keys.filter {
      $0.hasPrefix("FANFARE_") && !variables.contains(spelling(of: $0)) && !clientVariables.contains($0)
    }
    return unknown.sorted().map { name in
      NearestName.of(name, among: variables).map { "\(name) (\($0) is the nearest one)" } ?? name
    }
  }

  /// The variables of the commands that are clients of the HTTP API.
  package static let clientVariables: Set<String> = [
    "FANFARE_URL", "FANFARE_KEY", "FANFARE_USER", "FANFARE_PASSWORD", "FANFARE_HUB", "FANFARE_PROFILE",
    "FANFARE_TRUST_ROOTS_FILE",
  ]

  /// The mistakes with their places and values, in the order of the file.
  static func placed(
    _ mistakes: [SettingsMistake], file: SettingsFile?, environment: [String: String]
  ) -> [SettingsMistake] {
    let names = Dictionary(environment.keys.map { (spelling(of: $0), $0) }) { first, _ in first }
    let placed = mistakes.map { mistake in
      var (mistake, line, text): (SettingsMistake, Int?, String?) = (mistake, nil, nil)
      if let name = names[variable(of: mistake.key)] {
        (mistake.place, text) = (.variable(name), environment[name])
      } else if let file, !mistake.key.hasPrefix("-") {
        (line, text) = (file.entries[mistake.key]?.line, file.entries[mistake.key]?.text)
        mistake.place = .file(file.path, line: line)
      }
      if mistake.showsValue, let text { mistake.value = text.count > 60 ? "\(text.prefix(60))…" : text }
      return (mistake: mistake, line: line ?? .max)
    }
    // Mistakes without a line keep their order.
    return placed.enumerated().sorted { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }
      .map(\.element.mistake)
  }

  /// The variable that swift-configuration reads for a key.
  private static func variable(of key: String) -> String {
    let words = key.replacing(/([a-z])([A-Z])/) { "\($0.output.1)_\($0.output.2)" }
    return "FANFARE_" + String(words.uppercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
  }

  /// The spelling of a variable that swift-configuration expects.
  ///
  /// It looks for `keyIDFile` under KEY_IDFILE, because it starts no new word between two capitals.
  private static func spelling(of name: String) -> String {
    name.hasSuffix("_APNS_KEY_ID_FILE") ? "\(name.dropLast("_FILE".count))FILE" : name
  }
}
