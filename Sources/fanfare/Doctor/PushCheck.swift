import FanfareCore
import Logging
import PushServices
import Roles

/// The push services of a hub: TLS and credentials, by a push to a device that does not exist.
///
/// Nobody gets a notification. A service looks at the device only after it has accepted the credentials, so the answer
/// that the device is unknown shows that they work.
struct PushCheck {
  let settings: Settings
  let hub: HubSettings
  let patience: Duration
  let logger: Logger

  func findings() async -> [CheckResult] {
    let senders: [any PushSender]
    do { senders = try hub.senders(Runtime(settings: settings, logger: logger)).map(\.sender) } catch {
      // The check of the configuration has named it.
      return []
    }
    return await withTaskGroup(of: CheckResult.self) { group in
      for sender in senders { group.addTask { await finding(sender) } }
      var findings: [CheckResult] = []
      for await finding in group { findings.append(finding) }
      return findings.sorted { $0.area < $1.area }
    }
  }

  private func finding(_ sender: any PushSender) async -> CheckResult {
    let area = "push \(hub.name) \(sender.platform.name)"
    let (outcome, problem) = await withTaskGroup(
      of: PushOutcome?.self, returning: (PushOutcome?, String?).self
    ) { group in
      let running = Task {
        // Its problems show in the outcome.
        try? await sender.run()
      }
      group.addTask { await push(sender) }
      group.addTask {
        // Cancelled when the answer is there.
        try? await Task.sleep(for: patience)
        return nil
      }
      let first = await group.next() ?? nil
      let problem = sender.readinessProblem
      group.cancelAll()
      running.cancel()
      return (first, problem)
    }
    return Self.finding(area, outcome, problem: problem)
  }

  /// The meaning of the answer to a push to a device that does not exist; nil for none in time.
  static func finding(_ area: String, _ outcome: PushOutcome?, problem: String?) -> CheckResult {
    let answer = outcome.map { "\($0.reason.isEmpty ? $0.verdict.rawValue : $0.reason) (\($0.status))" } ?? "no answer"
    switch outcome?.verdict {
    case .accepted, .rejected, .deviceGone, .malformed:
      return .ok(area, "accepts the credentials; a push to no device was answered \(answer)")
    case .configurationError, .reauthenticate:
      return .wrong(
        area, problem ?? "refuses the credentials: \(answer)",
        remedy: "compare key, ids and topic or project with the service's console; a new file is used without a restart"
      )
    case .retryLater, .retryHere, .unknown, nil:
      if problem == nil, let outcome, outcome.status >= 400 {
        return .wrong(
          area, "answers that it cannot take pushes now: \(answer)",
          remedy: "see the service's status page; pushes are deferred meanwhile, and nothing need be restarted")
      }
      return .wrong(
        area, problem.map { "\($0) (\(answer))" } ?? "did not answer the push: \(answer)",
        remedy: "check the network, the firewall, host and port, and trustRootsFile")
    }
  }

  private func push(_ sender: any PushSender) async -> PushOutcome? {
    let now = SystemWallClock().now()
    let send = SendRequest(
      id: .random(), hub: hub.name, acceptedAt: now, audience: .everyone,
      content: Content(message: Message(body: "fanfare doctor")))
    let rendering: RenderedPush
    do { rendering = try sender.render(send) } catch { return error }
    let push = Push(
      ticket: 1, id: PushID(send: send.id, registration: .random()),
      handle: sender.platform.vocabulary.absentHandle, rendering: rendering, expiresAt: now + patience)
    let (answers, continuation) = AsyncStream.makeStream(of: PushOutcome.self)
    sender.submit([push]) { results in
      for result in results { continuation.yield(result.outcome) }
      continuation.finish()
    }
    return await answers.first { _ in true }
  }
}
