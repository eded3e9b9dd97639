import ArgumentParser
import Foundation
import HTTPServer
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import Roles

/// A server that answers every request with a constant: what a front end would cost without its work.
struct ConstantServer: Sendable {
  /// The body, as long as the one of an accepted send.
  static let answer = #"{"id":"019b0000-0000-7000-8000-000000000000","state":"accepted"}"#

  let process: ChildProcess
  /// Its URLs' beginning, for HTTP/1.1 and for HTTP/2 in the clear.
  let base: String
  let http2Base: String

  /// Starts nginx with one process; nil if it is not installed.
  static func nginx(_ rig: BenchRig) async throws -> ConstantServer? {
    guard let nginx = ChildProcess.find("nginx") else { return nil }
    for _ in 0..<5 {
      let (port, http2Port) = (try await LocalPort.free(), try await LocalPort.free())
      let settings = rig.path("nginx-\(port).conf")
      try Data(self.settings(rig, port: port, http2Port: http2Port).utf8).write(to: URL(fileURLWithPath: settings))
      let process = try ChildProcess(
        ["-c", settings, "-p", rig.path(""), "-e", "stderr"], name: "nginx", program: nginx, directory: rig.directory)
      do {
        try await LocalPort.untilListening(port, "nginx")
        try await LocalPort.untilListening(http2Port, "nginx")
      } catch {
        process.destroy()
        throw BenchError("\(error)\n\(process.lastWords)")
      }
      // If nginx has ended, another process accepted the connection.
      if process.isRunning {
        return ConstantServer(
          process: process, base: "http://127.0.0.1:\(port)", http2Base: "http://127.0.0.1:\(http2Port)")
      }
    }
    throw BenchError("nginx got no port")
  }

  /// Starts the front end's listener without a front end.
  static func listener(_ rig: BenchRig) async throws -> ConstantServer {
    let process = try ChildProcess(["bench-constant"], name: "constant", directory: rig.directory)
    let base = "http://\(try await process.address())"
    return ConstantServer(process: process, base: base, http2Base: base)
  }

  private static func settings(_ rig: BenchRig, port: Int, http2Port: Int) -> String {
    """
    daemon off;
    master_process off;
    worker_processes 1;
    pid \(rig.path("nginx.pid"));
    events { worker_connections 2048; }
    http {
      access_log off;
      keepalive_requests 1000000000;
      client_body_temp_path \(rig.path("nginx-body"));
      proxy_temp_path \(rig.path("nginx-proxy"));
      fastcgi_temp_path \(rig.path("nginx-fastcgi"));
      uwsgi_temp_path \(rig.path("nginx-uwsgi"));
      scgi_temp_path \(rig.path("nginx-scgi"));
      server {
        listen 127.0.0.1:\(port);
        listen 127.0.0.1:\(http2Port) http2;
        default_type application/json;
        location / { return 202 '\(answer)'; }
      }
    }

    """
  }
}

/// `fanfare-dev bench-constant`: the front end's listener with a constant answer.
struct BenchConstantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench-constant", abstract: "Part of bench: an HTTP server that answers a constant.",
    shouldDisplay: false)

  private struct Constant: Application {
    func begin(_ exchange: inout Exchange) -> Reply {
      .now(
        Answer(
          status: .accepted, headers: [.contentType: "application/json"],
          body: .bytes(ByteBuffer(string: ConstantServer.answer))))
    }

    func answer(to fault: RequestFault, requestID: String?) -> Answer { Answer(status: .badRequest) }
  }

  func run() async throws {
    let budget = ByteBudget(limit: 64 << 20, largest: 16 << 20)
    let listener = Listener(
      ListenerConfiguration(host: "127.0.0.1", port: 0, budgets: ByteBudgets(bodies: budget, answers: budget)),
      serving: Constant(), logger: Logger(label: "bench-constant", factory: { _ in SwiftLogNoOpLogHandler() }))
    async let serving: Void = listener.run(on: MultiThreadedEventLoopGroup.singleton)
    if let port = await listener.boundPort() { Console.print("constant 127.0.0.1:\(port)") }
    try await serving
  }
}
