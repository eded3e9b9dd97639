import ArgumentParser
import Hummingbird
import NIOCore
import Roles

/// `fanfare-dev bench-constant`: the HTTP server under the front end as it comes, answering every notification with the
/// same words. A ceiling for `fanfare-dev bench`.
struct BenchConstantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench-constant", abstract: "Part of bench: an HTTP server that answers a constant.",
    shouldDisplay: false)

  func run() async throws {
    let router = Router()
    router.post("/api/notifications") { request, _ in
      _ = try await request.body.collect(upTo: 65_536)
      return Response(
        status: .ok, headers: [.contentType: "application/json"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: #"{"id":"019b0000-0000-7000-8000-000000000000"}"#)))
    }
    let application = Application(
      router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0), backlog: 1024),
      onServerRunning: { channel in Console.print("constant 127.0.0.1:\(channel.localAddress?.port ?? 0)") })
    try await application.runService()
  }
}
