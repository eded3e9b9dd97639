import Foundation
import NIOCore
import NIOPosix
import PushSimulator

/// What the pushes arrive at: another process that answers as a push service does, and counts.
struct Sink: Sendable {
  /// What it is.
  enum Kind: Sendable {
    /// nghttp2's server, with `libPushSink.so` before its library.
    case nghttpd(countFile: URL)
    /// `fanfare simulator`; its counts are behind the admin URL.
    case simulator(adminURL: String, directory: String)
    /// Somebody else's; it does not tell us what it has counted.
    case external
  }

  let kind: Kind
  let host: String
  let port: Int
  /// The file of the roots to trust.
  let trustRoots: String?
  let process: ChildProcess?

  /// Where the sink of the full measurements comes from: nghttpd where it is installed and `libPushSink.so` was built
  /// beside this program.
  static var preload: (nghttpd: URL, library: URL)? {
    let library = ChildProcess.workshop.deletingLastPathComponent().appending(path: "libPushSink.so")
    guard let nghttpd = ChildProcess.find("nghttpd"), FileManager.default.fileExists(atPath: library.path) else {
      return nil
    }
    return (nghttpd, library)
  }

  /// The fastest sink there is here.
  static func start(_ rig: BenchRig) async throws -> Sink {
    if let sink = rig.options.sink {
      return Sink(kind: .external, host: sink.host, port: sink.port, trustRoots: sink.trustRoots, process: nil)
    }
    guard let (nghttpd, library) = preload else { return try await simulator(rig) }
    for _ in 0..<5 { if let sink = try await start(nghttpd, library, on: try await freePort(), rig) { return sink } }
    throw BenchError("nghttpd got no port")
  }

  /// nghttpd on a port; nil if somebody else has taken the port meanwhile.
  private static func start(_ nghttpd: URL, _ library: URL, on port: Int, _ rig: BenchRig) async throws -> Sink? {
    let countFile = URL(fileURLWithPath: rig.path("sink-\(UUID())"))
    let process = try ChildProcess(
      [
        "--address=127.0.0.1", "--htdocs=/nonexistent", "\(port)",
        rig.key(SimulatorCredentials.FileName.certificateKey),
        rig.key(SimulatorCredentials.FileName.certificate),
      ], name: "nghttpd", environment: ["LD_PRELOAD": library.path, "FANFARE_SINK_COUNT": countFile.path],
      program: nghttpd,
      directory: rig.directory)
    let sink = Sink(
      kind: .nghttpd(countFile: countFile), host: "127.0.0.1", port: port,
      trustRoots: rig.key(SimulatorCredentials.FileName.authority), process: process)
    do { try await sink.untilListening() } catch {
      process.destroy()
      throw error
    }
    // Whoever it was that took the connection.
    return process.isRunning ? sink : nil
  }

  /// A simulator, which validates each push.
  static func simulator(_ rig: BenchRig) async throws -> Sink {
    let directory = rig.path("keys")
    let process = try rig.start(
      "simulator", settings: "simulator: {directory: \(directory), recordsPushes: false}\nlog: {level: warning}\n")
    let adminURL = try await process.address()
    let endpoints = try JSONDecoder().decode(
      SimulatorEndpoints.self,
      from: try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(SimulatorCredentials.FileName.endpoints)")))
    return Sink(
      kind: .simulator(adminURL: adminURL, directory: directory), host: endpoints.host, port: endpoints.apnsPort,
      trustRoots: rig.key(SimulatorCredentials.FileName.authority), process: process)
  }

  /// What it calls itself in the report.
  var name: String {
    switch kind {
    case .nghttpd: "nghttpd"
    case .simulator: "fanfare simulator"
    case .external: "\(host):\(port)"
    }
  }

  /// How many pushes it has accepted since it started; nil where it does not tell.
  func accepted() async throws -> Int? {
    switch kind {
    case .external: return nil
    case .nghttpd(let countFile):
      let bytes = [UInt8](try Data(contentsOf: countFile))
      return bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
    case .simulator(let adminURL, _):
      struct Counts: Decodable { let accepted: Int }
      let answer = try await APIClient(base: adminURL).request("GET", "/counts", user: "bench")
      return try JSONDecoder().decode(Counts.self, from: answer).accepted
    }
  }

  /// Ends it.
  func stop() { process?.destroy() }

  /// nghttpd says nothing when it is ready: asks until it takes a connection.
  private func untilListening() async throws {
    try await withTimeLimit(.seconds(10), "nghttpd to listen") {
      while true {
        do {
          return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(host: host, port: port)
            .get()
            .close()
        } catch is ChannelError {
          try await Task.sleep(for: .milliseconds(10))
        } catch is NIOConnectionError {
          try await Task.sleep(for: .milliseconds(10))
        }
      }
    }
  }

  /// A port that was free a moment ago: nghttpd cannot say which one it got.
  private static func freePort() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(
      host: "127.0.0.1", port: 0
    ).get()
    let port = channel.localAddress?.port
    try await channel.close()
    guard let port else { throw BenchError("the system gave no port") }
    return port
  }
}
