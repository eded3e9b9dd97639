import DequeModule
import FanfareCore
import Worker

/// Checks of the promises about single pushes: whom a device belongs to, dead devices, quotas and rates, and how many
/// pushes a worker has in flight.
///
/// `@unchecked Sendable`: see `World`.
final class Promises: @unchecked Sendable {
  /// A push service of one hub.
  struct Service: Hashable {
    let hub: HubName
    let platform: Platform
  }

  /// A device that a process has found among those of an audience.
  private struct Finding: Hashable {
    let process: String
    let hub: HubName
    let handle: String
    /// Nil: the device was looked up alone.
    let audience: Audience?
  }

  private struct LookUp {
    let askedAt: World.Time
    let answeredAt: World.Time
  }

  /// Pushes within some time.
  private struct Window {
    let length: World.Time
    let most: Int
    private var times: Deque<World.Time> = []

    init(_ length: World.Time, most: Int) { (self.length, self.most) = (length, most) }

    /// Counts a push. Returns whether there were too many.
    mutating func add(_ now: World.Time) -> Bool {
      times.append(now)
      while let first = times.first, first <= now - length { times.removeFirst() }
      return times.count > most
    }
  }

  private struct InFlight: Hashable {
    let process: String
    let service: Service?
  }

  /// How long a device that is called dead may still be looked up as registered.
  private static let dropPatience: World.Time = .seconds(10)

  private let world: World
  private let profile: Profile
  private let limits: WorkerConfiguration
  private let violate: (String) -> Void
  private var lookUps: [Finding: LookUp] = [:]
  private var calledDead: [String: World.Time] = [:]
  private var quotas: [Service: Window] = [:]
  private var rates: [SendID: Window] = [:]
  private var inFlight: [InFlight: Int] = [:]
  private(set) var checks = 0
  private var turns = 0

  init(in world: World, _ profile: Profile, limits: WorkerConfiguration, violate: @escaping (String) -> Void) {
    (self.world, self.profile, self.limits, self.violate) = (world, profile, limits, violate)
  }

  // Memory.

  /// A worker has ended a turn. Its load is looked at now and then, because that takes long.
  func turned(_ process: String, _ load: () -> WorkerLoad) {
    turns += 1
    if turns % 64 == 0 { held(load().records, by: process) }
  }

  /// A worker holds records: at most its limit, and as many again while a service does not answer.
  func held(_ records: Int, by process: String) {
    checks += 1
    if records > limits.limits.maximumRecords * 2 { violate("\(process) holds \(records) records") }
  }

  // Look-ups.

  /// A process has the answer to a look-up.
  func found(_ pages: [AudiencePage], of queries: [AudienceQuery], by process: String, askedAt: World.Time) {
    for (query, page) in zip(queries, pages) {
      let audience: Audience? = if case .registration = query.audience { nil } else { query.audience }
      for target in page.targets {
        let finding = Finding(process: process, hub: query.hub, handle: target.handle, audience: audience)
        lookUps[finding] = LookUp(askedAt: askedAt, answeredAt: world.now)
      }
    }
  }

  /// The registry has removed devices that were called dead.
  func dropped(_ verdicts: [DeadDevice]) {
    for verdict in verdicts {
      checks += 1
      if !PushServiceModel.isGone(verdict.handle, of: profile.dead) {
        violate("\(verdict.registration) is alive and was unregistered")
      }
    }
  }

  // Pushes.

  /// A worker hands a push over.
  func handedOver(_ push: Push, of send: SendRequest, by process: String, to service: Service) {
    checks += 1
    checkOwner(push, of: send, by: process)
    if profile.keepsQuotas, let perMinute = limits.pushesPerMinute[service.hub]?[service.platform] {
      if quotas[service, default: Window(.seconds(60), most: perMinute)].add(world.now) {
        violate("\(service.platform) of \(service.hub) gets more than \(perMinute) pushes in a minute")
      }
    }
    // Pushes that wait for a service have had their permits.
    if profile.keepsQuotas, !profile.disturbsServices, let rate = send.maximumPerSecond {
      // A quarter of a second's pushes have their permits at once.
      if rates[send.id, default: Window(.seconds(10), most: rate * 11)].add(world.now) {
        violate("\(send.id) has more than \(rate) pushes a second")
      }
    }
    count(1, process, service)
  }

  /// A worker has the answer to a push, or will get none.
  func answered(_ push: Push, _ outcome: PushOutcome, by process: String, from service: Service) {
    count(-1, process, service)
    if outcome.verdict == .deviceGone, calledDead[push.handle] == nil { calledDead[push.handle] = world.now }
  }

  /// The device was looked up a moment ago among those of the send's audience.
  private func checkOwner(_ push: Push, of send: SendRequest, by process: String) {
    func lookUp(_ audience: Audience?) -> LookUp? {
      lookUps[Finding(process: process, hub: send.hub, handle: push.handle, audience: audience)]
    }
    let found = [lookUp(send.audience), lookUp(nil)].compactMap(\.self)
    guard let last = found.max(by: { $0.askedAt < $1.askedAt }) else {
      return violate("\(push.id) of \(send.id) goes to a device that was not looked up")
    }
    let age = world.now - last.askedAt
    let ownershipWindow = World.Time(limits.times.ownershipWindow)
    let window = send.isBroadcast ? .seconds(4) : ownershipWindow
    // A look-up that takes longer than the ownership window counts as asked that long before its answer. Workers count
    // in whole milliseconds, and hand over a moment after they have decided.
    let tolerance = World.Time.milliseconds(2)
    if age > window + tolerance, last.answeredAt - ownershipWindow + window + tolerance < world.now {
      violate("\(push.id) of \(send.id) goes to a device that was looked up \(age / 1000) ms ago")
    }
    if profile.unregistersDead, let dead = calledDead[push.handle], last.askedAt > dead + Self.dropPatience {
      violate("\(push.id) of \(send.id) goes to a device that was called dead long ago")
    }
  }

  private func count(_ change: Int, _ process: String, _ service: Service) {
    inFlight[InFlight(process: process, service: service), default: 0] += change
    inFlight[InFlight(process: process, service: nil), default: 0] += change
    let pushes = inFlight[InFlight(process: process, service: service)] ?? 0
    let all = inFlight[InFlight(process: process, service: nil)] ?? 0
    if pushes > limits.limits.maximumPushesPerSender || all > limits.limits.maximumPushes {
      violate("\(process) has \(pushes) pushes in flight to one service, \(all) in all")
    }
  }
}
