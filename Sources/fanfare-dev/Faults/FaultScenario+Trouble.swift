import FanfareCore
import Foundation

extension FaultScenario {
  /// Faults of a deployment's other dependencies: handshakes, registry, clocks and keys.
  static let trouble = [
    FaultScenario("TLS handshakes refused") { deployment, _ in
      for service in ["apns", "fcm"] {
        try await deployment.order(#"{"service":"\#(service)","action":"refuse-handshake"}"#)
        // The services answer the next push on each open connection with GOAWAY, so that workers need a new one.
        try await deployment.order(#"{"service":"\#(service)","action":"goaway"}"#)
      }
      try await Task.sleep(for: .seconds(15))
      try await deployment.withdrawFaults()
      return []
    },
    FaultScenario("registry locked", needs: [.registryFile]) { deployment, _ in
      let lock = try RegistryLock(registry: deployment.registry)
      try await lock.lock()
      try await Task.sleep(for: .seconds(12))
      guard await deployment.hasUnreadyFrontEnd() else {
        throw BenchError("all front ends are ready although the registry is locked")
      }
      try await Task.sleep(for: .seconds(3))
      lock.unlock()
      return []
    },
    FaultScenario("registry slow", isQuick: true, needs: [.registryFile]) { deployment, isQuick in
      let lock = try RegistryLock(registry: deployment.registry)
      for _ in 0..<(isQuick ? 5 : 20) {
        try await lock.lock()
        try await Task.sleep(for: .milliseconds(600))
        lock.unlock()
        try await Task.sleep(for: .milliseconds(150))
      }
      return []
    },
    FaultScenario("steps of the clocks, while pushes are deferred", needs: [.steppedClocks]) { deployment, _ in
      try await deployment.order(#"{"service":"fcm","action":"answer","status":503,"retryAfter":3,"share":0.3}"#)
      let steps: [(role: String, number: Int, by: Duration)] = [
        ("worker", 0, .seconds(3600)), ("worker", 1, .seconds(-3600)), ("worker", 2, .seconds(30)),
        ("api", 0, .seconds(-600)),
        ("api", 1, .seconds(600)), ("ledger", 0, .seconds(-3600)), ("ledger", 0, .seconds(3600)),
      ]
      for step in steps {
        try deployment.setClock(step.role, step.number, by: step.by)
        try await Task.sleep(for: .seconds(6))
        try deployment.setClock(step.role, step.number, by: .zero)
        try await Task.sleep(for: .seconds(1))
      }
      try await deployment.withdrawFaults()
      return []
    },
    FaultScenario("keys revoked, and replaced without a restart") { deployment, _ in
      for service in ["apns", "fcm"] {
        let files = try await deployment.replaceKey(of: service)
        // An operator needs time to notice.
        try await Task.sleep(for: .seconds(5))
        try deployment.install(files)
        await deployment.noteHealed()
        try await Task.sleep(for: .seconds(5))
      }
      return []
    },
  ]
}
