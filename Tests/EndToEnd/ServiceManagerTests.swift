import Foundation
import Testing

@testable import fanfare_dev

/// What a role tells the service manager that started it.
@Suite(.timeLimit(.minutes(3))) struct ServiceManagerTests {
  /// A service manager's socket: Python prints each message as one line.
  private static let receiver = """
    import socket, sys
    name = sys.argv[1]
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind("\\0" + name[1:] if name[0] == "@" else name)
    print("listening", flush=True)
    while True: print("|".join(listener.recv(4096).decode().split("\\n")), flush=True)
    """

  /// Calls `body` with a socket's messages while it exists.
  private func withSocket(_ name: String, in directory: URL, _ body: (ChildProcess) async throws -> Void) async throws {
    let python = try #require(ChildProcess.find("python3"))
    let process = try ChildProcess(["-c", Self.receiver, name], name: "manager", program: python, directory: directory)
    defer { process.destroy() }
    try #require(try await process.line() == "listening")
    try await body(process)
  }

  @Test func readyRoleIsAnnouncedAndWatchedUntilItHasStopped() async throws {
    try await Deployment.with { deployment in
      let name = deployment.directory.appending(path: "notify").path
      try await withSocket(name, in: deployment.directory) { manager in
        let role = try deployment.startFrontEndProcess(["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "400000"])
        var messages: [String] = []
        while messages.last?.contains("READY=1") != true { messages.append(try await manager.line()) }
        #expect(messages.last == "WATCHDOG=1|READY=1|STATUS=Ready")
        #expect(messages.dropLast().allSatisfy { $0.contains("EXTEND_TIMEOUT_USEC=") }, "\(messages)")
        #expect(try await manager.line() == "WATCHDOG=1")

        role.signal(SIGTERM)
        var last = try await manager.line()
        while last == "WATCHDOG=1" { last = try await manager.line() }
        #expect(last.hasPrefix("STOPPING=1|STATUS=Stopping, waits for: "), "\(last)")
        #expect(last.contains("listener of operations"), "\(last)")
        #expect(try await role.exitStatus() == 0)
      }
    }
  }

  @Test func roleWithoutKafkaSaysWhyItIsNotReady() async throws {
    try await withDirectory("manager") { directory in
      let name = "@fanfare-\(UUID())"
      try await withSocket(name, in: directory) { manager in
        let role = try ChildProcess(
          ["api"], name: "api",
          environment: [
            "FANFARE_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "FANFARE_KAFKA_DURABILITY_CHECK": "off",
            "FANFARE_API_PORT": "0", "FANFARE_HUB_DEFAULT_AUTHENTICATION_METHOD": "demo", "NOTIFY_SOCKET": name,
          ], program: ChildProcess.product, directory: directory)
        defer { role.destroy() }
        let message = try await manager.line()
        #expect(message.hasPrefix("EXTEND_TIMEOUT_USEC=60000000|STATUS=Not ready: "), "\(message)")
        #expect(message.contains("; kafka: "), "\(message)")
        role.signal(SIGTERM)
        #expect(try await role.exitStatus() == 0)
      }
    }
  }
}
