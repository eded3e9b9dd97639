import FanfareCore

/// Whether the results of sends are those of their pushes: every device of an audience has one, a result "delivered" is
/// one that a push service has given, attempts are counted, and no worker repeats a push that it knows to be delivered.
///
/// `@unchecked Sendable`: see `World`.
final class Results: @unchecked Sendable {
  /// The results of one dispatch, of those parts that have a status record.
  private struct Dispatch {
    var parts: Set<Int> = []
    var listed: Set<RegistrationID> = []
    var delivered = 0
    var all = 0
    /// Whether parts ended without looking at their devices.
    var isCut = false
  }

  private let world: World
  private let violate: (String) -> Void
  private let registry: SimulatedRegistry
  /// Whether the devices of an audience are those at the beginning, but for dead ones.
  private let isComplete: Bool
  /// The devices of each open send when it was posted.
  private var audiences: [SendID: (send: SendRequest, devices: Set<RegistrationID>)] = [:]
  private var dispatches: [SendID: [DispatchID?: Dispatch]] = [:]
  /// The process that was told last that the push is delivered.
  private var known: [PushID: (process: String, at: World.Time)] = [:]
  /// How often each push of an open send was handed over.
  private var attempts: [PushID: Int] = [:]
  /// How many devices' services have said so.
  private var accepted: [SendID: Int] = [:]

  init(
    in world: World, _ registry: SimulatedRegistry, _ profile: Profile, violate: @escaping (String) -> Void
  ) {
    (self.world, self.registry, self.violate) = (world, registry, violate)
    isComplete = profile.moves == 0 && profile.registryLag == .zero
  }

  func posted(_ send: SendRequest) { audiences[send.id] = (send, devices(of: send)) }

  /// The devices of the audience now.
  private func devices(of send: SendRequest) -> Set<RegistrationID> {
    let page = registry.state.page(AudienceQuery(send), .whole, createdBefore: send.acceptedAt, limit: .max)
    return Set(page.targets.map(\.registration))
  }

  func handedOver(_ push: PushID) { attempts[push, default: 0] += 1 }

  /// A process has the answer to a push.
  func answered(_ push: Push, _ outcome: PushOutcome, to process: String, of send: SendID) {
    guard outcome.verdict == .accepted else { return }
    if known.updateValue((process, world.now), forKey: push.id) == nil { accepted[send, default: 0] += 1 }
  }

  /// Whether the process was told, at a moment that satisfies the condition, that the push is delivered.
  func isKnown(_ push: Push, to process: String, at condition: (World.Time) -> Bool) -> Bool {
    known[push.id].map { $0.process == process && condition($0.at) } ?? false
  }

  /// A status record is in the log. `isEnd`: the send has its end with it. `isUndisturbed`: no worker was in trouble
  /// since the send was posted, so that no push was handed over by another one.
  func noted(_ status: StatusRecord, isEnd: Bool, isUndisturbed: Bool) {
    guard let audience = audiences[status.send] else { return }
    var dispatch = dispatches[status.send]?[status.attempt] ?? Dispatch()
    if dispatch.parts.insert(status.part).inserted {
      for device in status.devices {
        if !dispatch.listed.insert(device.registration).inserted {
          violate("\(status.send) has two results for one device")
        }
        let push = PushID(send: status.send, registration: device.registration)
        let attempts = attempts.removeValue(forKey: push) ?? 0
        if isUndisturbed, device.attempts != attempts {
          violate("\(status.send) has a result after \(device.attempts) attempts, and there were \(attempts)")
        }
        if device.outcome == .delivered {
          dispatch.delivered += 1
          if known[push] == nil {
            violate("\(status.send) is delivered to \(device.registration), whose service has not taken it")
          }
        }
      }
      dispatch.delivered += status.counts[.delivered]
      dispatch.all += status.devices.count + status.counts.total
      if status.state != .settled, status.state != .noTarget { dispatch.isCut = true }
    }
    dispatches[status.send, default: [:]][status.attempt] = dispatch
    guard isEnd else { return }
    audiences[status.send] = nil
    dispatches[status.send] = nil
    check(status, dispatch, audience)
    accepted[status.send] = nil
  }

  private func check(
    _ status: StatusRecord, _ dispatch: Dispatch, _ audience: (send: SendRequest, devices: Set<RegistrationID>)
  ) {
    let accepted = accepted[status.send] ?? 0
    if dispatch.delivered > accepted {
      violate("\(status.send) has \(dispatch.delivered) results delivered, and its services have taken \(accepted)")
    }
    guard !dispatch.isCut, isComplete else { return }
    // Devices that came or went in the meantime may have a result or not.
    let present = devices(of: audience.send)
    let (least, most) = (audience.devices.intersection(present), audience.devices.union(present))
    if dispatch.listed.count == dispatch.all, !least.isSubset(of: dispatch.listed) {
      violate("\(status.send) has no result for \(least.subtracting(dispatch.listed).count) of its devices")
    } else if dispatch.all < least.count || dispatch.all > most.count {
      violate("\(status.send) has \(dispatch.all) results for \(least.count) to \(most.count) devices")
    }
  }
}
