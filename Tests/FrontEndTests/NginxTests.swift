import FanfareCore
import Foundation
import HTTPServer
import NIOCore
import NIOPosix
import Support
import Testing

@testable import FrontEnd

/// The text for nginx in the article Security, with nginx itself and a client that speaks HTTP/2 alone.
@Suite(.enabled(if: Nginx.isAvailable, "needs nginx and nghttp"), .timeLimit(.minutes(2))) struct NginxTests {
  @Test func theTextOfTheArticleServesClientsOfHTTP2Alone() async throws {
    let sink = RecordingSink()
    try await Harness.run({
      $0.sink = sink
      $0.configuration.proxies = try #require(TrustedProxies(["127.0.0.1"]))
    }) { app in
      try await Nginx.run(inFrontOf: app.port) { nginx in
        let alive = try await nginx.request("/openapi.json")
        #expect(alive.contains(":status: 200"), "\(alive)")
        // A page's origin has the port, so that a log-in shows whether the port is passed on.
        let origin = ["-H", "origin: https://localhost:\(nginx.port)", "-H", "content-type: application/json"]
        let session = try await nginx.request(
          "/api/session", origin, body: #"{"user":"opal","password":"opal"}"#)
        #expect(session.contains(":status: 201") && session.contains("; Secure"), "\(session)")
        // Larger than nginx keeps in memory.
        let lines = String(repeating: #"{"to":{"user":"bob"},"message":{"body":"b"}}"# + "\n", count: 2000)
        let batch = try await nginx.request(
          "/api/sends/batch",
          ["-H", "authorization: \(Harness.basic("alice", "alice"))", "-H", "content-type: application/x-ndjson"],
          body: lines)
        #expect(batch.contains(":status: 200"), "\(batch.prefix(2000))")
        #expect(try sink.sends().count == 2000)
      }
    }
  }
}

/// nginx with the text of the article, on a port of its own.
private struct Nginx {
  private static let program = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }
  private static let article = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "../../Sources/fanfare/Documentation.docc/Security.md")

  static let isAvailable =
    program != nil && FileManager.default.isExecutableFile(atPath: "/usr/bin/nghttp")

  let port: Int
  private let directory: URL

  /// Runs nginx until `body` returns.
  static func run(inFrontOf backend: Int, _ body: (Nginx) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-nginx-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    let certificates = try TestCertificates()
    try certificates.serverPEM.write(to: directory.appending(path: "cert.pem"), atomically: true, encoding: .utf8)
    try certificates.serverKeyPEM.write(to: directory.appending(path: "key.pem"), atomically: true, encoding: .utf8)
    let program = try #require(Self.program)
    // Between the choice of a free port and nginx's start another program may take it.
    var port = 0
    var nginx: Program
    repeat {
      port = try await freePort()
      try configuration(port, backend, directory).write(
        to: directory.appending(path: "nginx.conf"), atomically: true, encoding: .utf8)
      nginx = try Program(
        program,
        ["-p", directory.path, "-c", directory.appending(path: "nginx.conf").path, "-e", "error.log"],
        output: directory.appending(path: "output"))
      while nginx.isRunning, try await !listens(port) { await Task.yield() }
    } while try !nginx.isRunning && nginx.output.contains("Address already in use")
    let complaint = try nginx.output
    try #require(nginx.isRunning, "\(complaint)")
    let result: Result<Void, any Error>
    do {
      try await body(Nginx(port: port, directory: directory))
      result = .success(())
    } catch { result = .failure(error) }
    nginx.stop()
    await nginx.end()
    try result.get()
  }

  private static func listens(_ port: Int) async throws -> Bool {
    // Refused until nginx listens.
    guard
      let channel = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(host: "127.0.0.1", port: port).get()
    else { return false }
    try await channel.close()
    return true
  }

  /// The article's text with the addresses and files of the test.
  private static func configuration(_ port: Int, _ backend: Int, _ directory: URL) throws -> String {
    let text = try String(contentsOf: article, encoding: .utf8)
    let start = try #require(text.firstRange(of: "```\nupstream fanfare")?.lowerBound)
    let block = text[text.index(start, offsetBy: 4)...]
    let end = try #require(block.firstRange(of: "\n```")?.lowerBound)
    let server = block[..<end].replacing("listen 443 ", with: "listen 127.0.0.1:\(port) ")
      .replacing("127.0.0.1:8080", with: "127.0.0.1:\(backend)")
      .replacing("/etc/nginx/tls/", with: directory.path + "/")
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
      "\($0)_temp_path \(directory.path)/\($0);"
    }
    return """
      daemon off;
      pid nginx.pid;
      events {}
      http {
      access_log off;
      \(folders.joined(separator: "\n"))
      \(server)
      }

      """
  }

  private static func freePort() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try #require(channel.localAddress?.port)
    try await channel.close()
    return port
  }

  /// Sends a request with nghttp, and returns the frames that it saw.
  func request(_ path: String, _ options: [String] = [], body: String? = nil) async throws -> String {
    var arguments = ["--verbose", "--timeout=60"] + options
    if let body {
      let file = directory.appending(path: "body")
      try body.write(to: file, atomically: true, encoding: .utf8)
      arguments += ["--data", file.path]
    }
    let nghttp = try Program(
      "/usr/bin/nghttp", arguments + ["https://localhost:\(port)\(path)"], output: directory.appending(path: "answer"))
    await nghttp.end()
    return try nghttp.output
  }
}

/// A program that writes to a file.
private final class Program: Sendable {
  private let process: Process
  private let file: URL
  private let ended = AsyncStream<Never>.makeStream()

  init(_ path: String, _ arguments: [String], output file: URL) throws {
    self.file = file
    process = Process()
    try Data().write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.standardOutput = handle
    process.standardError = handle
    process.terminationHandler = { [ended] _ in ended.continuation.finish() }
    try process.run()
  }

  var isRunning: Bool { process.isRunning }
  var output: String { get throws { try String(contentsOf: file, encoding: .utf8) } }

  func stop() { process.terminate() }

  /// Waits until the program has ended.
  func end() async { for await _ in ended.stream {} }
}
