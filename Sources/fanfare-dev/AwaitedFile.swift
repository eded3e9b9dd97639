import FoundationEssentials
import Logging
import NIOCore
import NIOPosix
import PushSimulator
import Roles

/// A file that another process writes once it listens. A role that starts at the same time waits for it.
struct AwaitedFile: Sendable {
  /// The key that names the file.
  let key: String
  let path: String
  /// Reads the addresses from the contents. At least one of them must accept connections.
  let addresses: @Sendable (Data) -> [(host: String, port: Int)]

  private static let interval = Duration.milliseconds(100)

  /// Suspends until the file names an address that accepts connections.
  ///
  /// A file of an earlier run names an address that does not, so it is ignored. Logs the wait once. Returns without an
  /// error after `patience`: the reader of the file then reports its error. Throws when cancelled.
  func appear(within patience: Duration = .seconds(30), logger: Logger) async throws {
    guard await !isThere() else { return }
    logger.notice(
      "Waiting for a file that another process writes", metadata: ["key": "\(key)", "file": "\(path)"])
    let deadline = ContinuousClock.now + patience
    while ContinuousClock.now < deadline {
      try await Task.sleep(for: Self.interval)
      if await isThere() { return }
    }
  }

  private func isThere() async -> Bool {
    // A missing file may be created soon, and an empty one written.
    guard let content = try? Data(contentsOf: URL(fileURLWithPath: path)), !content.isEmpty else { return false }
    let addresses = addresses(content)
    let client = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(1))
    for (host, port) in addresses {
      do {
        try await client.connect(host: host, port: port).get().close()
        return true
      } catch {
        // Refused: try the next address.
      }
    }
    return addresses.isEmpty
  }
}

extension AwaitedFile {
  /// The file in which a starting broker announces its address; nil if the address is configured.
  init?(of kafka: KafkaSettings) {
    guard let path = kafka.bootstrapServersFile else { return nil }
    self.init(key: "kafka.bootstrapServersFile", path: path) { content in
      // Of several brokers, one that accepts connections is enough.
      String(decoding: content, as: UTF8.self).split { $0 == "," || $0.isWhitespace }.compactMap { server in
        guard let colon = server.lastIndex(of: ":"), let port = Int(server[server.index(after: colon)...]) else {
          return nil
        }
        let host = server[..<colon]
        // An IPv6 address is in brackets. An entry with a protocol is skipped.
        return host.contains("/") ? nil : (host.filter { $0 != "[" && $0 != "]" }, port)
      }
    }
  }

  /// The file in which a starting simulator announces its addresses; nil if the hub does not push to one.
  init?(of hub: HubSettings) {
    guard let directory = hub.simulator else { return nil }
    self.init(
      key: "hub.\(hub.name).simulator", path: "\(directory)/\(SimulatorCredentials.FileName.endpoints)"
    ) { content in
      // The reader of the file reports its error.
      (try? JSONDecoder().decode(SimulatorEndpoints.self, from: content)).map { [($0.host, $0.adminPort)] } ?? []
    }
  }
}
