import NIOCore
import NIOPosix
package import PrivatePostgreSQL

extension PrivateServer {
  /// A port of 127.0.0.1 that nobody listened on a moment ago: a server of PostgreSQL must be told one.
  package static func unusedPort() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(
      host: "127.0.0.1", port: 0
    ).get()
    defer { channel.close(promise: nil) }
    return channel.localAddress?.port ?? 0
  }

  /// Starts a server that also listens on a port of 127.0.0.1; on another one where somebody else was quicker.
  package static func onAPort(settings: [String: String] = [:]) async throws -> (server: PrivateServer, port: Int) {
    var (attempt, settings) = (0, settings)
    settings["listen_addresses"] = "127.0.0.1"
    while true {
      let port = try await unusedPort()
      settings["port"] = "\(port)"
      do { return (try PrivateServer(settings: settings), port) } catch {
        attempt += 1
        guard attempt < 5 else { throw error }
      }
    }
  }
}
