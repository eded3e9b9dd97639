import FanfareCore

/// The model of a push service of one hub.
///
/// `@unchecked Sendable`: see `World`.
final class PushServiceModel: @unchecked Sendable {
  /// How it answers pushes, which faults change.
  enum Mode: Hashable, CustomStringConvertible {
    /// It takes pushes.
    case healthy
    /// It answers all pushes so.
    case answering(ServiceAnswer)
    /// It takes a share of the pushes, and asks to repeat the others later.
    case throttling

    var description: String {
      switch self {
      case .healthy: "healthy"
      case .throttling: "throttling"
      case .answering(.silence): "silent"
      case .answering(.refused): "refusing"
      case .answering(let answer): "\(answer)"
      }
    }
  }

  struct Behaviour {
    /// How long a push takes.
    var latency = Latency(.milliseconds(5)...(.milliseconds(60)), slowest: .seconds(2))
    /// The share of pushes that are taken without an answer.
    var doubt = 0.0
    /// The share of pushes that fail for a moment.
    var glitches = 0.0
    /// The share of devices that are gone.
    var dead = 0.0
    /// The share of devices each of which has an answer of its own, other than to take the push.
    var refusing = 0.0
  }

  /// After how long a sender gives up waiting.
  static let timeout: World.Time = .seconds(20)
  /// How long a sender takes to renew its credential.
  static let renewal: World.Time = .milliseconds(200)

  let platform: Platform
  let hub: HubName
  let world: World
  var behaviour = Behaviour()
  private(set) var mode = Mode.healthy
  /// How often its connections were closed, and credentials have expired.
  private(set) var connections = 0
  private(set) var credentials = 0
  /// Told about every push that is taken for a device.
  var onDelivery: (Push) -> Void = { _ in }
  /// Told about each push that it accepts after its expiry, and does not deliver.
  var onLapse: (Push) -> Void = { _ in }

  init(_ platform: Platform, of hub: HubName = .default, in world: World) {
    (self.platform, self.hub) = (platform, hub)
    self.world = world
    become(.healthy)
  }

  /// As traces name it: only those of further hubs need the hub's.
  var name: String { hub == .default ? platform.name : "\(hub).\(platform.name)" }

  /// Answers in another way from now on.
  func become(_ mode: Mode) {
    self.mode = mode
    world.note(mode == .healthy ? .well(name, "service", "is healthy") : .trouble(name, "service", "is \(mode)"))
  }

  /// Closes all connections: pushes that have not arrived are not processed, some of the others lose their answers.
  func closeConnections() {
    connections += 1
    world.trace.note(world.now, "\(platform) of \(hub) closes its connections")
  }

  /// Lets all credentials expire: senders have to renew them.
  func expireCredentials() {
    credentials += 1
    world.trace.note(world.now, "\(platform) of \(hub) lets credentials expire")
  }

  /// A push arrives, on a connection and with a credential of these numbers.
  fileprivate func take(_ push: Push, connection: Int, credential: Int) -> ServiceAnswer {
    guard connection == connections else { return .goAway }
    if case .answering(let answer) = mode { return answer }
    guard credential == credentials else { return .expired }
    if mode == .throttling, world.happens(0.8) { return .throttled(retryAfter: world.happens(0.5) ? 2 : nil) }
    if world.happens(behaviour.glitches) { return .failing }
    if Self.isGone(push.handle, of: behaviour.dead) { return .gone(since: world.wall) }
    if let refusal = Self.refusal(of: push.handle, share: behaviour.refusing) {
      return world.happens(0.15) ? .silence : refusal
    }
    if push.expiresAt > world.wall { onDelivery(push) } else { onLapse(push) }
    return world.happens(behaviour.doubt) ? .silence : .accepted
  }

  /// Whether the device with the handle is gone: always the same share of them.
  static func isGone(_ handle: String, of share: Double) -> Bool {
    share > 0 && Double(FNV1a.hash(handle.utf8) % 10_000) < share * 10_000
  }

  /// The answer that the device with the handle has to nearly every push, if it is one of the share.
  private static func refusal(of handle: String, share: Double) -> ServiceAnswer? {
    let answers: [ServiceAnswer] = [
      .tooLarge, .malformed, .throttled(retryAfter: 2), .failing, .refused, .expired, .goAway, .silence,
    ]
    let hash = FNV1a.hash(handle.utf8)
    guard Double((hash >> 16) % 10_000) < share * 10_000 else { return nil }
    return answers[Int((hash >> 40) % UInt64(answers.count))]
  }
}

/// A push service as one process sees it.
struct ServiceConnection: PushSender {
  /// The number of the credential that the process has.
  ///
  /// `@unchecked Sendable`: see `World`.
  private final class Credential: @unchecked Sendable {
    var number: Int
    var isBeingRenewed = false

    init(_ number: Int) { self.number = number }
  }

  private let service: PushServiceModel
  private let process: SimulatedProcess
  private let accounts: Accounts
  private let promises: Promises
  private let credential: Credential

  init(of process: SimulatedProcess, to service: PushServiceModel, _ accounts: Accounts, _ promises: Promises) {
    self.service = service
    self.process = process
    self.accounts = accounts
    self.promises = promises
    credential = Credential(service.credentials)
  }

  var platform: Platform { service.platform }
  var readinessProblem: String? { nil }

  /// The payload is the send's id, by which the world knows what arrives.
  func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    RenderedPush(headers: [], body: Array("\(send.id)".utf8))
  }

  func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    guard !process.isDead else { return }
    let (service, process, accounts, world) = (service, process, accounts, service.world)
    let id = Promises.Service(hub: service.hub, platform: platform)
    for push in pushes {
      accounts.handedOver(push, by: process.name, at: process.now())
      if let send = accounts.send(of: push) { promises.handedOver(push, of: send, by: process.name, to: id) }
      let once = Once()
      let complete = { [self] (answer: ServiceAnswer) in
        guard once.pass() else { return }
        if answer == .expired { renew() }
        let outcome = answer.outcome(on: service.platform, at: process.now())
        promises.answered(push, outcome, by: process.name, from: id)
        accounts.answered(push, outcome, to: process.name)
        completion([PushResult(ticket: push.ticket, outcome: outcome)])
      }
      // A push waits for the new credential.
      let (renewal, number) = credential.isBeingRenewed ? (PushServiceModel.renewal, nil) : (0, credential.number)
      let connection = service.connections
      world.after(world.random(.milliseconds(1)...(.milliseconds(5))) + renewal) { [credential] in
        guard !process.cut.contains(.services) else { return }
        let answer = service.take(push, connection: connection, credential: number ?? credential.number)
        let arrived = service.connections
        guard answer != .silence else { return }
        process.after(service.behaviour.latency.sample(in: world)) {
          accounts.timed(push)
          // After GOAWAY a service may still answer what it has taken.
          let isLost = arrived != service.connections && world.happens(0.5)
          complete(isLost ? .connectionLost : answer)
        }
      }
      process.after(PushServiceModel.timeout) { complete(.silence) }
    }
  }

  private func renew() {
    guard !credential.isBeingRenewed else { return }
    credential.isBeingRenewed = true
    process.after(PushServiceModel.renewal) { [credential, service] in
      credential.isBeingRenewed = false
      credential.number = service.credentials
    }
  }

  func run() async throws {}
}
