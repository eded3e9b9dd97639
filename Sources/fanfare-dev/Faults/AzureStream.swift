import AsyncHTTPClient
import Crypto
import FanfareCore
import Foundation
import NIOCore
import NIOHTTP1
import Roles
import Synchronization

/// Sends of an Azure client while its front end is killed, with and without an `Idempotency-Key`.
///
/// The client does what Azure's SDKs do: a request without an answer is sent again, to the next front end. With a key
/// each send arrives exactly once. Without one it arrives at least once, and twice only if its request was repeated.
final class AzureStream: Sendable {
  private static let rule = "faults"
  private static let key = "only-for-the-fault-suite"
  private static let file = "azure-rules"
  private static let user = "azure-client"
  private static let device = "azure-device"
  /// The stream's sends are numbered after those of the load.
  private static let first = 1_000_000_000
  private static let kills = 3
  private static let attempts = 50

  private struct State {
    var next = AzureStream.first
    var isOver = false
    /// The accepted sends, and those of them whose request was repeated.
    var accepted: Set<Int> = []
    var repeated: Set<Int> = []
  }

  private let state = Mutex(State())

  var scenario: FaultScenario {
    FaultScenario(
      "kill -9 of the api under Azure sends",
      settings: ["FANFARE_AZURE_ENABLED": "true", "FANFARE_HUB_DEFAULT_AZURE_RULES_FILE": Self.file],
      files: [Self.file: "\(Self.rule) Send \(Self.key)\n"],
      inspect: { deployment, _ in try await self.inspect(deployment) },
      injure: { deployment, _ in
        try await self.run(in: deployment)
        return []
      })
  }

  private func run(in deployment: FaultDeployment) async throws {
    guard let frontEnd = await deployment.frontEnds.first else { throw BenchError("there is no front end") }
    _ = try await frontEnd.request(
      "POST", "/api/register", user: Self.user,
      body: #"{"platform":"android","instId":"azure","deviceToken":"\#(Self.device)"}"#)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 { group.addTask { try await self.post(to: deployment) } }
      for _ in 0..<Self.kills {
        try await Task.sleep(for: .milliseconds(Int64.random(in: 500...1500)))
        try await deployment.kill("api", 0)
        try await deployment.startFrontEnd(0)
      }
      try await Task.sleep(for: .seconds(1))
      state.withLock { $0.isOver = true }
      try await group.waitForAll()
    }
  }

  /// Posts sends one after another. Every other one has an `Idempotency-Key`.
  private func post(to deployment: FaultDeployment) async throws {
    while true {
      let number = state.withLock { state -> Int? in
        guard !state.isOver else { return nil }
        state.next += 1
        return state.next
      }
      guard let number else { return }
      try await post(number, to: deployment)
    }
  }

  private func post(_ number: Int, to deployment: FaultDeployment) async throws {
    for attempt in 0..<Self.attempts {
      if attempt > 0 {
        _ = state.withLock { $0.repeated.insert(number) }
        try await Task.sleep(for: .milliseconds(100))
      }
      let frontEnds = await deployment.frontEnds
      let base = frontEnds[(number + attempt) % frontEnds.count].base
      var request = HTTPClientRequest(url: "\(base)/default/messages?api-version=2020-06")
      request.method = .POST
      request.headers = [
        "authorization": Self.token(for: base), "content-type": "application/json;charset=utf-8",
        "servicebusnotification-format": "gcm", "servicebusnotification-tags": "username:\(Self.user)",
      ]
      if Self.hasKey(number) { request.headers.add(name: "idempotency-key", value: "azure-\(number)") }
      request.body = .bytes(Array(#"{"data":{"message":"\#(FaultLoad.mark)\#(number)"}}"#.utf8))
      let status: UInt
      do {
        status = try await HTTPClient.shared.execute(request, timeout: .seconds(30)).status.code
      } catch  where !Task.isCancelled {
        continue
      }
      switch status {
      case 201:
        _ = state.withLock { $0.accepted.insert(number) }
        return
      case 429, 500...599: continue
      default: throw BenchError("the Azure send \(number) was refused: \(status)")
      }
    }
    throw BenchError("the Azure send \(number) was not accepted in \(Self.attempts) attempts")
  }

  private static func hasKey(_ number: Int) -> Bool { number % 2 == 0 }

  private static func token(for base: String) -> String {
    func escaped(_ text: String) -> String { text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "" }
    let (resource, expiry) = (escaped("\(base)/default"), Int(Date().timeIntervalSince1970) + 3600)
    let signature = HMAC<SHA256>.authenticationCode(
      for: Data("\(resource)\n\(expiry)".utf8), using: SymmetricKey(data: Data(key.utf8)))
    return "SharedAccessSignature sr=\(resource)&sig=\(escaped(Data(signature).base64EncodedString()))"
      + "&se=\(expiry)&skn=\(rule)"
  }

  /// Compares the arrivals with what the client was told.
  private func inspect(_ deployment: FaultDeployment) async throws -> FaultFindings {
    let state = state.withLock { $0 }
    let arrivals = try await deployment.arrivals(on: .fcm, at: [Self.device])
    let counts = Dictionary(grouping: arrivals, by: \.number).mapValues(\.count)
    var findings = FaultFindings()
    findings.lost = state.accepted.count { counts[$0] == nil }
    var twice = 0
    for (number, count) in counts where count > 1 {
      if Self.hasKey(number) || !state.repeated.contains(number) { findings.errors += 1 } else { twice += 1 }
    }
    let keyed = state.accepted.count(where: Self.hasKey)
    findings.observed =
      "\(keyed) with a key, \(keyed - state.accepted.count { Self.hasKey($0) && counts[$0] == 1 }) not exactly once; "
      + "\(state.accepted.count - keyed) without, \(twice) of them twice"
    return findings
  }
}
