import FanfareCore
import FoundationEssentials
import Operations
import SettingsTable

/// The export of traces. Nil without `tracing.endpoint`.
struct TracingSettings: Sendable {
  private let configuration: SpanExporter.Configuration
  let sampleRatio: Double

  struct Keys: Sendable {
    @Setting(example: "http://127.0.0.1:4318", "the collector; /v1/traces is added to an address without a path")
    var endpoint: String?
    @Setting("of the sends without a traceparent; otherwise its sampled flag decides") var sampleRatio = 0.01
    @Setting(
      example: "/etc/fanfare/otlp-headers",
      "lines \"Name: value\", such as a key of the collector; sent over https "
        + "or locally")
    var headersFile: SecretFile?
  }

  static let keys = SettingsSection(
    "tracing", Keys(),
    "Traces of sends through front end, worker and ledger, in OpenTelemetry's protocol (OTLP over HTTP, JSON). Off "
      + "without an endpoint.",
    // Between an exporter and its collector these hardly ever matter.
    retired: [
      "batchSize": "a request has at most 512 spans", "queueSize": "at most 4,096 spans wait",
      "timeoutSeconds": "a request may take 10 seconds",
    ])

  init?(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    let (endpoint, file) = (keys.endpoint, keys.headersFile)
    sampleRatio = keys.sampleRatio
    guard let endpoint else {
      guard file == nil else { throw SettingsError("tracing.endpoint", "is missing: tracing.headersFile is given") }
      return nil
    }
    guard let url = URL(string: endpoint), let scheme = url.scheme, ["http", "https"].contains(scheme),
      let host = url.host(), !host.isEmpty, url.user() == nil
    else {
      throw SettingsError("tracing.endpoint", "must be a URL such as http://127.0.0.1:4318 or https://otel.example.com")
    }
    let isLocal = host == "localhost" || host.hasPrefix("127.") || host == "::1" || host == "[::1]"
    guard file == nil || scheme == "https" || isLocal else {
      throw SettingsError("tracing.endpoint", "must be https, because tracing.headersFile is given")
    }
    let hasPath = !["", "/"].contains(url.path)
    var exporter = SpanExporter.Configuration(endpoint: "")
    exporter.endpoint = hasPath ? endpoint : endpoint.trimmingSuffix { $0 == "/" } + "/v1/traces"
    exporter.headers = try file.map { file throws(SettingsError) in try Self.headers(try file.text()) } ?? []
    configuration = exporter
  }

  /// The exporter of a role's process.
  func exporter(of role: String) -> SpanExporter.Configuration {
    var configuration = configuration
    configuration.resource = [
      ("service.name", "fanfare-\(role)"), ("service.version", Build.version),
      ("host.name", ProcessInfo.processInfo.hostName),
      ("process.pid", "\(ProcessInfo.processInfo.processIdentifier)"),
    ]
    return configuration
  }

  private static func headers(_ text: String) throws(SettingsError) -> [(name: String, value: String)] {
    var headers: [(name: String, value: String)] = []
    for line in text.split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
      let parts = line.split(separator: ":", maxSplits: 1)
      let name = parts[0]
      let value = parts.count == 2 ? parts[1].drop { $0 == " " } : ""
      guard !value.isEmpty, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
        value.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
      else { throw SettingsError("tracing.headersFile", "must name a file with lines of the form Name: value") }
      headers.append((String(name), String(value)))
    }
    return headers
  }
}
