import FanfareCore
import FoundationEssentials
import Operations

/// The export of traces. Nil without `tracing.endpoint`.
///
/// - `tracing.endpoint` (text): the collector's URL (OTLP over HTTP); `/v1/traces` is added to one without a path.
/// - `tracing.sampleRatio` (0…1, default 0.01): the share of sends that are traced among those without a `traceparent`.
/// - `tracing.headersFile` (text): a secret file with lines `Name: value`, which are sent with each request; then the
///   endpoint has https or is on a loopback address.
/// - `tracing.batchSize` (1…10000, default 512), `tracing.queueSize` (1…1000000, default 4096): spans.
/// - `tracing.timeoutSeconds` (0.1…60, default 10)
struct TracingSettings: Sendable {
  private let endpoint: String
  private let headers: [(name: String, value: String)]
  private let batchSize: Int
  private let queueSize: Int
  private let timeout: Duration
  let sampleRatio: Double

  init?(from reader: SettingsReader) throws(SettingsError) {
    let endpoint = try reader.optionalString("tracing.endpoint")
    sampleRatio = try reader.share("tracing.sampleRatio", default: 0.01)
    let file = try reader.secretFile(at: "tracing.headersFile")
    batchSize = try reader.int("tracing.batchSize", default: 512, in: 1...10_000)
    queueSize = try reader.int("tracing.queueSize", default: 4096, in: 1...1_000_000)
    timeout = try reader.seconds("tracing.timeoutSeconds", default: 10, in: 0.1...60)
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
    self.endpoint = hasPath ? endpoint : endpoint.trimmingSuffix { $0 == "/" } + "/v1/traces"
    headers = try file.map { file throws(SettingsError) in try Self.headers(try file.text()) } ?? []
  }

  /// The exporter of a role's process.
  func exporter(of role: String) -> SpanExporter.Configuration {
    var configuration = SpanExporter.Configuration(endpoint: endpoint)
    configuration.headers = headers
    configuration.batchSize = batchSize
    configuration.queueSize = queueSize
    configuration.timeout = timeout
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
