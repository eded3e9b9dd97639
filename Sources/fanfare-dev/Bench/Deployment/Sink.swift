import FanfareCore
import Foundation
import NIOCore
import NIOPosix
import PushSimulator

/// The receiver of the pushes: another process that answers like a push service and counts.
struct Sink: Sendable {
  /// The kind of receiver.
  enum Kind: Sendable {
    /// nghttp2's server, with `libPushSink.so` preloaded.
    case nghttpd(countFile: URL)
    /// `fanfare-dev simulator`, whose counts are at the admin URL.
    case simulator(adminURL: String, directory: String)
    /// Another sink, whose counts are unknown.
    case external
  }

  let kind: Kind
  let host: String
  let port: Int
  /// The file of the roots to trust.
  let trustRoots: String?
  let process: ChildProcess?

  /// nghttpd and the library to preload, for full measurements.
  ///
  /// Nil unless nghttpd is installed and `libPushSink.so` was built into the directory of this program.
  static var preload: (nghttpd: URL, library: URL)? {
    let library = ChildProcess.workshop.deletingLastPathComponent().appending(path: "libPushSink.so")
    guard let nghttpd = ChildProcess.find("nghttpd"), FileManager.default.fileExists(atPath: library.path) else {
      return nil
    }
    return (nghttpd, library)
  }

  /// Starts the fastest sink that this machine has.
  static func start(_ rig: BenchRig) async throws -> Sink {
    if let sink = rig.options.sink {
      return Sink(kind: .external, host: sink.host, port: sink.port, trustRoots: sink.trustRoots, process: nil)
    }
    guard let (nghttpd, library) = preload else { return try await simulator(rig) }
    for _ in 0..<5 {
      if let sink = try await start(nghttpd, library, on: try await LocalPort.free(), rig) { return sink }
    }
    throw BenchError("nghttpd got no port")
  }

  /// Starts nghttpd on a port; nil if another process has taken the port meanwhile.
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
    do { try await LocalPort.untilListening(port, "nghttpd") } catch {
      process.destroy()
      throw error
    }
    // If nghttpd has ended, another process accepted the connection.
    return process.isRunning ? sink : nil
  }

  /// Starts a simulator, which validates each push.
  static func simulator(_ rig: BenchRig) async throws -> Sink {
    let directory = rig.path("keys")
    let process = try rig.start(
      "simulator", settings: "simulator: {directory: \(directory), recordsPushes: false}\nlog: {level: warning}\n")
    let adminURL = try await process.address()
    let endpoints = try JSONDecoder().decode(
      SimulatorEndpoints.self,
      from: try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(SimulatorCredentials.FileName.endpoints)")))
    return Sink(
      kind: .simulator(adminURL: adminURL, directory: directory), host: endpoints.host, port: endpoints.port(of: .apns),
      trustRoots: rig.key(SimulatorCredentials.FileName.authority), process: process)
  }

  /// The sink's name in the report.
  var name: String {
    switch kind {
    case .nghttpd: "nghttpd"
    case .simulator: "fanfare simulator"
    case .external: "\(host):\(port)"
    }
  }

  /// The number of pushes accepted since the start; nil if unknown.
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

  /// Ends the sink's process.
  func stop() { process?.destroy() }
}
