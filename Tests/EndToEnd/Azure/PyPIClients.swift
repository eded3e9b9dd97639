import Foundation
import Synchronization
import Testing

@testable import fanfare_dev

/// The two clients of Azure Notification Hubs that PyPI has, in a Python process; see `clients.py`.
final class PyPIClients: Sendable {
  /// The environment that `deploy/test` makes for them.
  private static let python = repository.appending(path: ".build/azure-clients/bin/python")
  private static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Whether the clients are installed.
  static var areInstalled: Bool { FileManager.default.isExecutableFile(atPath: python.path) }

  private let driver: Caller
  /// The public methods and functions of the clients, each as `client.method`.
  private let names: Set<String>
  private let called = Mutex(Set<String>())

  /// The methods and functions that were not called.
  var uncalled: Set<String> { called.withLock { names.subtracting($0) } }

  /// Runs `body` with the clients, which trust only this authority.
  static func with(
    trusting authority: URL, directory: URL, _ body: (PyPIClients) async throws -> Void
  ) async throws {
    let script = repository.appending(path: "Tests/EndToEnd/Azure/clients.py")
    let process = try ChildProcess(
      [script.path], name: "clients",
      // One for requests, the other for httpx.
      environment: ["REQUESTS_CA_BUNDLE": authority.path, "SSL_CERT_FILE": authority.path], program: python,
      directory: directory)
    defer { process.destroy() }
    try await body(try await PyPIClients(Caller(base: "http://" + process.address())))
  }

  private init(_ driver: Caller) async throws {
    self.driver = driver
    let lists = try await driver.get("/names").json.compactMapValues { $0 as? [String] }
    names = Set(lists.flatMap { client, methods in methods.map { "\(client).\($0)" } })
  }

  /// What a call returned, or the exception that it ended with.
  struct Reply {
    /// The result; null without one.
    let result: Any?
    let error: String?
    /// The HTTP status that an exception of the unofficial client tells; 0 if it tells none.
    let status: Int
    /// What the client printed.
    let output: String
  }

  /// Calls a method of a client, or a factory of the package `azure_notification_hub`.
  func call(
    _ client: Client, _ method: String, _ arguments: [String: Any] = [:], isDebug: Bool = false
  ) async throws -> Reply {
    _ = called.withLock { $0.insert("\(client.name).\(method)") }
    let order: [String: Any] =
      switch client {
      case .factories: ["factory": method, "arguments": arguments]
      case .rest(let door), .unofficial(let door):
        [
          "client": client.name, "connection": door, "hub": "default", "method": method, "arguments": arguments,
          "debug": isDebug ? 1 : 0,
        ]
      }
    let body = String(decoding: try JSONSerialization.data(withJSONObject: order), as: UTF8.self)
    let answer = try await driver.call("POST", "/call", body: body).json
    return Reply(
      result: answer["result"], error: answer["error"] as? String, status: answer["status"] as? Int ?? 0,
      output: answer["output"] as? String ?? "")
  }

  /// Something of the clients to call, with its connection string.
  enum Client {
    /// notificationhubs-rest-python: Microsoft's sample; sends only.
    case rest(String)
    /// azure-notification-hub-unofficial.
    case unofficial(String)
    /// The functions that make its messages.
    case factories

    var name: String {
      switch self {
      case .rest: "rest"
      case .unofficial: "unofficial"
      case .factories: "factories"
      }
    }
  }
}
