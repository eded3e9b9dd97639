package import SettingsTable

extension Settings {
  /// Loads the file, if any. Environment variables override its values.
  ///
  /// `readFurther` reads the keys that only the calling program has. Throws one `SettingsError` with all mistakes; an
  /// unknown key of the file is one. Collects unknown variables in `unknownVariables`.
  package static func load(
    file path: String?, environment: [String: String],
    readFurther: (SettingsReader) throws(SettingsError) -> Void = { _ in }
  ) throws -> Settings {
    let reading = try read(file: path, environment: environment, readFurther: readFurther)
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
  ) throws -> Reading {
    let file = try path.map { path throws(SettingsError) in try SettingsFile(path: path) }
    let sources = [SettingsSource(environment: environment)] + [file?.source].compactMap(\.self)
    let reader = SettingsReader(sources)
    for mistake in file?.mistakes ?? [] { reader.note(mistake) }
    let settings = reader.collect { () throws(SettingsError) in try Settings(from: reader) }
    _ = reader.collect { () throws(SettingsError) in try readFurther(reader) }
    for mistake in reader.retiredMistakes { reader.note(mistake) }
    for mistake in unknownKeys(of: file, reader) { reader.note(mistake) }
    return Reading(
      settings: settings, mistakes: placed(reader.mistakes, file: file, environment: environment),
      unknownVariables: unknownVariables(of: environment, reader))
  }

  private static func unknownKeys(of file: SettingsFile?, _ reader: SettingsReader) -> [SettingsMistake] {
    let (known, mistaken) = (reader.keys, Set(reader.mistakes.map(\.key)))
    return (file?.entries.keys.sorted() ?? []).compactMap { key in
      guard !known.contains(key), !mistaken.contains(key) else { return nil }
      // Without the names of the hubs their keys are not known either.
      guard !mistaken.contains("hubs") || !key.hasPrefix("hub.") else { return nil }
      let hint = NearestName.of(key, among: known).map { "\($0) is the nearest one" }
      return SettingsMistake(
        key: key, expectation: "is not a known key; \(hint ?? "deploy/fanfare.yaml lists all keys")")
    }
  }

  private static func unknownVariables(of environment: [String: String], _ reader: SettingsReader) -> [String] {
    let variables = Set(reader.keys.map(SettingsSource.variable)).union(["FANFARE_CONFIG"])
    let others = clientVariables.union(reader.retired.keys.map(SettingsSource.variable))
    let unknown = environment.keys.filter {
      $0.hasPrefix("FANFARE_") && !variables.contains(SettingsSource.spelling(of: $0)) && !others.contains($0)
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
    let names = Dictionary(environment.keys.map { (SettingsSource.spelling(of: $0), $0) }) { first, _ in first }
    let placed = mistakes.map { mistake in
      var (mistake, line, text): (SettingsMistake, Int?, String?) = (mistake, nil, nil)
      if let name = names[SettingsSource.variable(of: mistake.key)] {
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
}
