import NIOCore
import NIOPosix

/// Ports of 127.0.0.1 for programs that cannot report a port that the kernel chose.
enum LocalPort {
  /// A port that was free a moment ago.
  static func free() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(
      host: "127.0.0.1", port: 0
    ).get()
    let port = channel.localAddress?.port
    try await channel.close()
    guard let port else { throw BenchError("the system gave no port") }
    return port
  }

  /// Tries until the program accepts a connection on the port.
  static func untilListening(_ port: Int, _ program: String) async throws {
    try await withTimeLimit(.seconds(10), "\(program) to listen") {
      while true {
        do {
          return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port).get().close()
        } catch is ChannelError {
          try await Task.sleep(for: .milliseconds(10))
        } catch is NIOConnectionError {
          try await Task.sleep(for: .milliseconds(10))
        }
      }
    }
  }
}
