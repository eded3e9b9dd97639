import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// The Azure door of a test's deployment.
enum AzureSettings {
  static let fullRule = "DefaultFullSharedAccessSignature"
  static let fullKey = "Zm9yIHRlc3RzOiBmdWxsIGFjY2Vzcw=="
  static let listenRule = "DefaultListenSharedAccessSignature"
  static let listenKey = "Zm9yIHRlc3RzOiBsaXN0ZW4gb25seQ=="
  /// The hub's rules as a file has them.
  static let rules = """
    \(listenRule) Listen \(listenKey)
    \(fullRule) Listen,Send,Manage secondary-key-comes-first-here \(fullKey)
    """
  static let environment = [
    "FANFARE_AZURE_ENABLED": "true", "FANFARE_HUB_DEFAULT_AZURE_RULES_FILE": "azure-rules",
    // A rule is one caller, with many requests in a test.
    "FANFARE_HUB_DEFAULT_QUOTA_SENDS_PER_SECOND": "0", "FANFARE_HUB_DEFAULT_QUOTA_REGISTRATIONS_PER_DAY": "0",
  ]

  /// Runs a deployment with a worker and a front end that serves Azure's clients.
  static func withDeployment(
    _ settings: [String: String] = [:], _ body: (Deployment, Caller) async throws -> Void
  ) async throws {
    try await withDirectory("azure") { directory in
      let file = directory.appending(path: "azure-rules")
      try writeRules(to: file)
      try await Deployment.with(environment.merging(settings) { $1 }, files: ["azure-rules": file]) { deployment in
        let worker = try deployment.startWorker()
        let api = try await deployment.startFrontEnd()
        _ = try await deployment.ready(worker)
        try await body(deployment, api)
      }
    }
  }

  /// Writes the rules to a file that only its owner may read.
  static func writeRules(to file: URL) throws {
    try Data(rules.utf8).write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
  }

  /// A handle that no other word gives, in the form in which Fanfare shows it.
  static func handle(_ word: String, _ platform: Platform) -> String {
    switch platform {
    case .apns:
      let digits = word.utf8.map { String($0, radix: 16) }.joined().prefix(60)
      return "1a" + digits + String(repeating: "0", count: 62 - digits.count)
    case .fcm: return "\(word)-token"
    default: return "https://db5p.notify.windows.com/?v=1&token=\(word)"
    }
  }

  /// The name of the handle's device at the simulator.
  static func device(_ word: String, _ platform: Platform) -> String {
    platform == .wns ? word : handle(word, platform)
  }

  /// The telemetry of a send once it is complete.
  static func outcome(of send: String, _ door: AzureDoor) async throws -> String {
    try await eventually("the telemetry of \(send)") {
      let answer = try await door.send("GET", "/messages/\(send)")
      return answer.status == 200 && answer.body.contains("<State>Completed</State>")
    }
    return try await door.send("GET", "/messages/\(send)").body
  }
}
