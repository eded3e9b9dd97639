import FanfareCore
import Foundation
import RDKafka
import Support
import Testing

@testable import fanfare_dev

/// The answers to the requests in `Corpus`, byte for byte as before: own API, Azure's protocol, operations listener, and
/// the output of the commands.
///
/// `Corpus/replay.py` shares no code with this project. `FANFARE_WRITE_GOLDEN=1` records the answers again.
@Suite(.serialized, .timeLimit(.minutes(3))) struct AnswerCorpusTests {
  private static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Corpus")
  private static let program = corpus.appending(path: "replay.py").path
  private static let rules = """
    DefaultListenSharedAccessSignature Listen Zm9yIHRlc3RzOiBsaXN0ZW4gb25seQ==
    DefaultSendSharedAccessSignature Send Zm9yIHRlc3RzOiBzZW5kIG9ubHk=
    DefaultFullSharedAccessSignature Listen,Send,Manage secondary-key-comes-first-here \
    Zm9yIHRlc3RzOiBmdWxsIGFjY2Vzcw==
    """
  private static let settings = [
    "FANFARE_AZURE_ENABLED": "true", "FANFARE_AZURE_JOBS_FOLDER": "jobs",
    "FANFARE_HUB_DEFAULT_AZURE_RULES_FILE": "azure-rules", "FANFARE_HUB_SHOP_AZURE_RULES_FILE": "azure-rules",
    "FANFARE_HUBS": "default,shop", "FANFARE_HUB_SHOP_AUTHENTICATION_METHOD": "demo",
    "FANFARE_HUB_DEFAULT_AUTHENTICATION_EVERYONE": "device",
    "FANFARE_HUB_DEFAULT_AUTHENTICATION_GRANTS":
      "user alice: send:user send:tag send:broadcast send:device send:native,user carol: send:user,"
      + "user boss: send:user send:tag send:broadcast send:device send:native read:all operate,"
      + "user tight: send:user,user sender: send:user send:tag",
    "FANFARE_HUB_DEFAULT_QUOTA_EXCEPTIONS": "user tight: registrations=1 scheduledSends=1",
    // Many requests have wrong credentials.
    "FANFARE_AUTHENTICATION_FAILURES_PER_ADDRESS": "1000000",
    "FANFARE_AUTHENTICATION_FAILURES_PER_USER": "1000000",
  ]

  @Test(.enabled(if: python != nil)) func answersOverHTTP1AreAsBefore() async throws {
    try await replay("http1", ["own", "azure", "hostile"], into: "answers.txt")
  }

  /// Its file has only the answers that differ from those over HTTP/1.1 in more than the fields of a connection.
  @Test(.enabled("needs python3 with the package h2") { try await hasHTTP2 })
  func answersOverHTTP2AreAsBefore() async throws {
    try await replay("http2", ["own", "azure", "hostile"], into: "http2-differences.txt")
  }

  /// Also what `config check` says of wrong values of every key.
  @Test(.enabled(if: python != nil)) func outputOfCommandsIsAsBefore() async throws {
    try await replay("http1", ["commands"], into: "commands.txt")
  }

  private func replay(_ version: String, _ requests: [String], into golden: String) async throws {
    try await withDirectory("corpus") { directory in
      let file = directory.appending(path: "azure-rules")
      try Data(Self.rules.utf8).write(to: file)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
      try await Deployment.with(Self.settings, files: ["azure-rules": file]) { deployment in
        let worker = try deployment.startWorker()
        let (api, operations) = try await deployment.startObservedFrontEnd()
        _ = try await deployment.ready(worker)
        let poison = ProducerRecord(
          topic: deployment.topics.sends, partition: 1, key: Array("key".utf8),
          value: Array(#"{"not":"a send"}"#.utf8))
        try await deployment.produce([poison])
        let files = requests.map { Self.corpus.appending(path: "\($0).http").path }
        let addresses = [api, operations].map { String($0.base.dropFirst("http://".count)) }
        let variables = [
          "PROGRAM": ChildProcess.product.path, "FANFARE_URL": api.base, "FANFARE_USER": "boss",
          "FANFARE_PASSWORD": "boss",
        ]
        let process = try Self.start(
          [Self.program, version] + addresses + files, deployment.environment.merging(variables) { $1 },
          in: deployment.directory)
        defer { process.destroy() }
        let status = try await process.exitStatus(within: .seconds(120))
        #expect(status == 0, "\(process.log)")
        try Self.compare(try process.output(), with: GoldenFile(golden, test: Self.program))
      }
    }
  }

  /// Compares answer by answer.
  private static func compare(_ text: String, with golden: GoldenFile) throws {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    let (present, before) = (sections(lines), sections(try golden.lines { lines }))
    for title in Set(present.keys).union(before.keys) {
      let changes = (present[title] ?? []).difference(from: before[title] ?? []).map {
        switch $0 {
        case .remove(_, let line, _): "- \(line)"
        case .insert(_, let line, _): "+ \(line)"
        }
      }
      if !changes.isEmpty { Issue.record("\(title)\n\(changes.joined(separator: "\n"))") }
    }
  }

  /// The lines of the answers by their requests.
  private static func sections(_ lines: [String]) -> [String: [String]] {
    var (sections, title): ([String: [String]], String) = ([:], "")
    for line in lines {
      if line.hasPrefix("### ") { title = line } else { sections[title, default: []].append(line) }
    }
    return sections
  }

  private static let python = ChildProcess.find("python3")

  private static func start(
    _ arguments: [String], _ variables: [String: String] = [:], in directory: URL
  ) throws -> ChildProcess {
    try ChildProcess(
      arguments, name: "python3", environment: variables, program: try #require(python), directory: directory,
      keepsOutput: true)
  }

  private static var hasHTTP2: Bool {
    get async throws {
      guard python != nil else { return false }
      return try await withDirectory("python") { try await start(["-c", "import h2"], in: $0).exitStatus() == 0 }
    }
  }
}
