import FoundationEssentials
package import Logging
import NIOCore
import NIOPosix

/// A file that another process writes once it listens. Who is started beside that process waits for it.
package struct AwaitedFile: Sendable {
  /// The key that leads to it.
  let key: String
  let path: String
  /// Where the writer of such a file listens, at one of these at least; empty where it does not say so.
  let addresses: @Sendable (Data) -> [(host: String, port: Int)]

  private static let interval = Duration.milliseconds(100)

  /// Suspends until something stands in the file, and somebody listens where it says: what an earlier run has left
  /// there is of no use. But no longer than `patience`; says once that it waits, and for what. Who reads the file next
  /// says what is wrong if there still is none. Throws when cancelled.
  package func appear(within patience: Duration = .seconds(30), logger: Logger) async throws {
    guard await !isThere() else { return }
    logger.notice(
      "Waiting for a file that another process writes", metadata: [LogKeys.key: "\(key)", LogKeys.file: "\(path)"])
    let deadline = ContinuousClock.now + patience
    while ContinuousClock.now < deadline {
      try await Task.sleep(for: Self.interval)
      if await isThere() { return }
    }
  }

  private func isThere() async -> Bool {
    // What cannot be read may be about to be made; and what is empty, about to be written.
    guard let content = try? Data(contentsOf: URL(fileURLWithPath: path)), !content.isEmpty else { return false }
    let addresses = addresses(content)
    let client = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(1))
    for (host, port) in addresses {
      do {
        try await client.connect(host: host, port: port).get().close()
        return true
      } catch {
        // Nobody there: perhaps at the next one.
      }
    }
    return addresses.isEmpty
  }
}

extension KafkaSettings {
  /// Where a broker that is starting will say where it listens; nil where that is said already.
  package var awaitedFile: AwaitedFile? {
    bootstrapServersFile.map { path in
      AwaitedFile(key: "kafka.bootstrapServersFile", path: path) { content in
        // Of several brokers, one that answers leads to the others.
        String(decoding: content, as: UTF8.self).split { $0 == "," || $0.isWhitespace }.compactMap { server in
          guard let colon = server.lastIndex(of: ":"), let port = Int(server[server.index(after: colon)...]) else {
            return nil
          }
          let host = server[..<colon]
          // An address of IPv6 stands in brackets; a protocol before it is not worth reading.
          return host.contains("/") ? nil : (host.filter { $0 != "[" && $0 != "]" }, port)
        }
      }
    }
  }
}

extension HubSettings {
  /// Where a simulator that is starting will say where it listens; nil where the hub does not push to one.
  package var awaitedFile: AwaitedFile? {
    simulator.map { directory in
      AwaitedFile(key: "hub.\(name).simulator", path: SimulatorDirectory(path: directory).endpointsFile) {
        content in
        // Whoever uses it says what is wrong with it.
        (try? SimulatorDirectory.Endpoints(content)).map { [($0.host, $0.adminPort)] } ?? []
      }
    }
  }
}
