import FanfareCore
import Foundation
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
    let command = ["-p", directory.path, "-c", directory.appending(path: "nginx.conf").path, "-e", "error.log"]
    // Between the choice of a free port and nginx's start another program may take it.
    var port = 0
    var start: (status: Int32, output: String)
    repeat {
      port = try await freePort()
      try configuration(port, backend, directory).write(
        to: directory.appending(path: "nginx.conf"), atomically: true, encoding: .utf8)
      // Returns when nginx listens.
      start = try await Self.execute(program, command)
    } while start.output.contains("Address already in use")
    try #require(start.status == 0, "\(start.output)")
    let result: Result<Void, any Error>
    do {
      try await body(Nginx(port: port, directory: directory))
      result = .success(())
    } catch { result = .failure(error) }
    _ = try await Self.execute(program, command + ["-s", "stop"])
    try result.get()
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
    return try await Self.execute("/usr/bin/nghttp", arguments + ["https://localhost:\(port)\(path)"]).output
  }

  private static func execute(_ program: String, _ arguments: [String]) async throws -> (status: Int32, output: String)
  {
    let process = Process()
    // Not a pipe: nginx goes on in the background, and may keep its end open.
    let file = FileManager.default.temporaryDirectory.appending(path: "fanfare-nginx-\(UUID().uuidString).log")
    try Data().write(to: file)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: file) } }
    let output = try FileHandle(forWritingTo: file)
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = output
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      process.terminationHandler = { _ in continuation.resume() }
      do { try process.run() } catch { continuation.resume(throwing: error) }
    }
    return (process.terminationStatus, try String(contentsOf: file, encoding: .utf8))
  }
}
