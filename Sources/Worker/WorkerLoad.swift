import FanfareCore

/// Observes a worker from within.
package struct WorkerAudit: Sendable {
  /// Told after each turn the violations of the dispatcher's invariants; it can ask what waits.
  let turned: @Sendable (_ violations: [String], _ load: () -> WorkerLoad) -> Void
  let stepped: StepObserver

  package init(
    turned: @escaping @Sendable (_ violations: [String], _ load: () -> WorkerLoad) -> Void,
    stepped: @escaping StepObserver
  ) {
    (self.turned, self.stepped) = (turned, stepped)
  }
}

/// What waits in a worker, and where.
package struct WorkerLoad: Sendable {
  /// Items by phase.
  package fileprivate(set) var items: [String: Int] = [:]
  /// Pushes without a result, by push service and phase: `platform`, or `hub.platform`.
  package fileprivate(set) var pushes: [String: [String: Int]] = [:]
  /// The push services whose circuit is open.
  package fileprivate(set) var stopped: [String] = []
  /// The records that are held, without segments and pages, and the bytes of all.
  package fileprivate(set) var records = 0
  package fileprivate(set) var bytes = 0
}

extension Dispatcher {
  /// What waits now. Looks at every item and device.
  var load: WorkerLoad {
    var load = WorkerLoad()
    // Names are made once for each kind, not for each device.
    var pushes: [Int: [DeviceProgress.Phase: Int]] = [:]
    for slot in items.indices where items[slot].phase != .vacant {
      load.items["\(items[slot].phase)", default: 0] += 1
      for device in items[slot].devices where device.isOpen && device.sender >= 0 {
        pushes[device.sender, default: [:]][device.phase, default: 0] += 1
      }
    }
    for (sender, phases) in pushes {
      load.pushes[name(ofSender: sender)] = Dictionary(uniqueKeysWithValues: phases.map { ("\($0)", $1) })
    }
    for sender in lanes.indices where lanes[sender].isStopped {
      load.stopped.append(name(ofSender: sender))
    }
    load.records = items.held.records
    load.bytes = items.held.bytes + items.held.segmentBytes
    return load
  }

  private func name(ofSender sender: Int) -> String {
    let (hub, platform) = (table.hub(ofSender: sender), table.platform(ofSender: sender))
    return hub == .default ? platform.name : "\(hub).\(platform.name)"
  }
}
