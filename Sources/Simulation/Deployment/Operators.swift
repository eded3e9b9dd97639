import FanfareCore

/// Those who watch broadcasts: they pause, resume and cancel some of the latest.
///
/// `@unchecked Sendable`: see `World`.
final class Operators: @unchecked Sendable {
  private let process: SimulatedProcess
  private let registry: RegistryConnection
  /// The latest broadcasts.
  private var broadcasts: [BroadcastID] = []
  /// Since when a broadcast is paused or cancelled.
  private(set) var halts: [BroadcastID: World.Time] = [:]

  init(at process: SimulatedProcess, registry: SimulatedRegistry) {
    self.process = process
    self.registry = RegistryConnection(of: process, to: registry)
  }

  func watch(_ broadcast: BroadcastID) {
    broadcasts.append(broadcast)
    if broadcasts.count > 3 { broadcasts.removeFirst() }
  }

  func pause(for time: World.Time) {
    guard let broadcast = process.world.element(of: broadcasts) else { return }
    steer(broadcast, .paused)
    process.after(time) { [self] in steer(broadcast, .running) }
  }

  func cancel() {
    guard let broadcast = process.world.element(of: broadcasts) else { return }
    steer(broadcast, .cancelled)
  }

  private func steer(_ broadcast: BroadcastID, _ state: BroadcastControl.State) {
    // Whether the command has been carried out already is not known before its answer.
    if state == .running { halts[broadcast] = nil }
    process.insist { [self] in
      let control = BroadcastControl(state, because: .caller)
      process.world.trace.note(process.world.now, "\(broadcast.send) is to be \(state)")
      let answer = try await registry.control(broadcast, control, at: process.now())
      if answer.state == .running {
        halts[broadcast] = nil
      } else {
        halts[broadcast] = halts[broadcast] ?? process.world.now
      }
    }
  }
}

extension SimulatedProcess {
  /// Makes a request, and repeats it each second while it fails.
  func insist(_ request: @escaping @Sendable () async throws -> Void) {
    start { [self] in
      for _ in 0..<60 {
        do { return try await request() } catch {
          // Refused, or not answered: it may have been carried out all the same.
          do { try await sleep(for: .seconds(1)) } catch { return }
        }
      }
    }
  }
}
