import Configuration
import FanfareCore
import FoundationEssentials
import Logging
import Yams

/// The configuration of the product; every role reads and checks all of it.
///
/// Values come from a YAML file, overridden by environment variables: `kafka.bootstrapServers` is
/// `FANFARE_KAFKA_BOOTSTRAP_SERVERS`. `deploy/fanfare.yaml` lists every key with its default; a test compares it with
/// the keys read here.
package struct Settings: Sendable {
  package var kafka: KafkaSettings
  package let registry: RegistrySettings
  /// The time without contact after which a registration expires; nil for never.
  let registrationLifetime: Duration?
  package let ledger: LedgerSettings
  package let api: APISettings
  package let authentication: AuthenticationSettings
  let worker: WorkerSettings
  /// The operations server of each role.
  let operations: OperationsSettings
  /// The hubs, in the order of the file.
  package let hubs: [HubSettings]
  let logLevel: Logger.Level
  /// The key of the hashes in the security log; nil: a random one.
  let securityKey: [UInt8]?
  /// The variables with the program's prefix that match no key, sorted.
  package private(set) var unknownVariables: [String] = []

  /// The topics to which a front end produces.
  var intakeTopics: [String] { Set(hubs.map { kafka.topics.intake(of: $0.name) }).sorted() }

  /// The consumer group that all workers share.
  package var workerGroup: String { worker.group ?? "\(kafka.topics.prefix).workers" }

  /// Throws an error that names the key of the first unusable value.
  init(from reader: SettingsReader) throws(SettingsError) {
    let names = try Self.hubNames(from: reader)
    kafka = try KafkaSettings(hubs: names, from: reader)
    registry = try RegistrySettings(from: reader)
    let days = try reader.int("registry.expireAfterDays", default: 0, in: 0...3650)
    registrationLifetime = days == 0 ? nil : .seconds(Int64(days) * 86_400)
    ledger = try LedgerSettings(from: reader)
    authentication = try AuthenticationSettings(from: reader)
    api = try APISettings(from: reader, topics: kafka.topics, logins: authentication.logins)
    worker = try WorkerSettings(from: reader)
    operations = try OperationsSettings(from: reader)
    let level = try reader.string("log.level", default: Logger.Level.info.rawValue)
    guard let level = Logger.Level(rawValue: level) else {
      throw SettingsError(
        "log.level", "must be one of " + Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))
    }
    logLevel = level
    securityKey = try Self.securityKey(from: reader)
    var hubs: [HubSettings] = []
    for name in names { hubs.append(try HubSettings(name, from: reader)) }
    self.hubs = hubs
  }

  private static func hubNames(from reader: SettingsReader) throws(SettingsError) -> [HubName] {
    var hubs: [HubName] = []
    for name in try reader.strings("hubs", default: [HubName.default.rawValue]) {
      guard let hub = HubName(name), !hubs.contains(hub) else {
        throw SettingsError("hubs", "must list names once each: \(HubName.rule)")
      }
      hubs.append(hub)
    }
    guard !hubs.isEmpty else { throw SettingsError("hubs", "must name at least one hub") }
    return hubs
  }

  /// Loads the file, if any. Environment variables override its values.
  ///
  /// `readFurther` reads the keys that only the calling program has. Throws `SettingsError`, also for an unknown key of
  /// the file. Collects unknown variables in `unknownVariables`.
  package static func load(
    file: String?, environment: [String: String],
    readFurther: (SettingsReader) throws(SettingsError) -> Void = { _ in }
  ) async throws -> Settings {
    let spelt = Dictionary(environment.map { (spelling(of: $0.key), $0.value) }) { first, _ in first }
    var providers: [any ConfigProvider] = [
      EnvironmentVariablesProvider(environmentVariables: spelt).prefixKeys(with: "fanfare")
    ]
    var fileKeys: Set<String> = []
    if let file {
      let text: String
      do { text = try String(contentsOfFile: file, encoding: .utf8) } catch {
        throw SettingsError("--config", "names a file that cannot be read: \(file)")
      }
      do {
        fileKeys = try Self.keys(of: text, at: file)
        if !fileKeys.isEmpty {
          let path = InMemoryProvider(values: ["filePath": ConfigValue(.string(file), isSecret: false)])
          providers.append(try await FileProvider<YAMLSnapshot>(config: ConfigReader(provider: path)))
        }
      } catch let error as SettingsError {
        throw error
      } catch {
        throw SettingsError("--config", "names a file that is not YAML: \(file): \(Self.place(of: error))")
      }
    }
    let reader = SettingsReader(providers: providers)
    var settings = try Settings(from: reader)
    try readFurther(reader)
    let unknown = fileKeys.subtracting(reader.keys).sorted()
    if let first = unknown.first {
      let others = unknown.count == 1 ? "" : " (nor are \(unknown.dropFirst().joined(separator: ", ")))"
      throw SettingsError(first, "is not a known key\(others); deploy/fanfare.yaml lists all keys")
    }
    let known = Set(reader.keys.map(variable)).union(["FANFARE_CONFIG"])
    settings.unknownVariables = environment.keys.filter {
      $0.hasPrefix("FANFARE_") && !known.contains(spelling(of: $0))
    }.sorted()
    return settings
  }

  private static func securityKey(from reader: SettingsReader) throws(SettingsError) -> [UInt8]? {
    guard let text = try reader.secretFile(at: "log.securityKeyFile")?.text() else { return nil }
    let key = Array(text.utf8)
    guard (16...4096).contains(key.count) else {
      throw SettingsError("log.securityKeyFile", "must name a file with 16 to 4096 bytes of secret text")
    }
    return key
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

  /// The position and kind of a YAML error, without the text at that position, which may be a password.
  private static func place(of error: any Error) -> String {
    switch error {
    case YamlError.scanner(_, let problem, let mark, _), YamlError.parser(_, let problem, let mark, _),
      YamlError.composer(_, let problem, let mark, _):
      "line \(mark.line), column \(mark.column): \(problem)"
    case YamlError.reader(let problem, _, _, _): problem
    case YamlError.duplicatedKeysInMapping(_, let context): "line \(context.mark.line): a key is given twice"
    default: "it cannot be read"
    }
  }

  /// The dotted keys of all values in a file's text; empty for an empty document.
  ///
  /// Throws `YamlError` for invalid YAML, `SettingsError` for YAML that is no configuration.
  private static func keys(of text: String, at file: String) throws -> Set<String> {
    // A file of comments has no document; `---` alone is an empty one.
    guard let document = try Yams.compose(yaml: text), document.null == nil else { return [] }
    guard document.mapping != nil else {
      throw SettingsError("--config", "must name a file with a mapping of keys: \(file)")
    }
    return Set(try keys(of: document))
  }

  /// The dotted keys of all values below a YAML node. A list is one value.
  ///
  /// The error for a value of the wrong shape names only its key: the value may be a password.
  static func keys(of node: Yams.Node, under prefix: String = "") throws(SettingsError) -> [String] {
    guard let mapping = node.mapping else {
      // The provider would read `null` or `~` as text.
      guard node.null == nil else { throw SettingsError(prefix, "must not be empty") }
      if let list = node.sequence {
        for element in list {
          guard element.scalar != nil else { throw SettingsError(prefix, "must be a list of texts") }
          guard element.null == nil else { throw SettingsError(prefix, "must not have an empty element") }
        }
      }
      return [prefix]
    }
    var found: [String] = []
    for (key, value) in mapping {
      guard let word = key.string else {
        throw SettingsError(prefix.isEmpty ? "--config" : prefix, "must have words for keys")
      }
      found += try keys(of: value, under: prefix.isEmpty ? word : "\(prefix).\(word)")
    }
    return found
  }
}
