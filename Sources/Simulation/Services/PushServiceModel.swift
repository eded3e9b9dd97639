import FanfareCore

/// The model of a push service.
///
/// `@unchecked Sendable`: see `World`.
final class PushServiceModel: @unchecked Sendable {
  /// How it answers pushes, which faults change.
  enum Mode: Hashable {
    /// It takes pushes.
    case healthy
    /// It answers 503.
    case unavailable
    /// It answers nothing.
    case silent
    /// It refuses the credential.
    case refusing
    /// It takes a share of the pushes, and asks to repeat the others later.
    case throttling
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
  }

  /// After how long a sender gives up waiting.
  static let timeout: World.Time = .seconds(20)

  let platform: Platform
  let hub: HubName
  let world: World
  var behaviour = Behaviour()
  private(set) var mode = Mode.healthy
  /// Told about every push that is taken for a device.
  var onDelivery: (Push) -> Void = { _ in }

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

  /// A push arrives. Returns the answer and how long it takes; nil: there is none.
  fileprivate func take(_ push: Push) -> (outcome: PushOutcome, delay: World.Time)? {
    let delay = behaviour.latency.sample(in: world)
    switch mode {
    case .silent: return nil
    case .unavailable: return (PushOutcome(.retryLater, reason: "ServiceUnavailable", status: 503), delay)
    case .refusing: return (PushOutcome(.configurationError, reason: "InvalidProviderToken", status: 403), delay)
    case .throttling where world.happens(0.8):
      return (
        PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(2)), delay
      )
    case .healthy, .throttling: break
    }
    if world.happens(behaviour.glitches) {
      return (PushOutcome(.retryLater, reason: "InternalServerError", status: 500), delay)
    }
    if Self.isGone(push.handle, of: behaviour.dead) {
      return (PushOutcome(.deviceGone, reason: "Unregistered", status: 410, since: world.wall), delay)
    }
    if push.expiresAt > world.wall { onDelivery(push) }
    return world.happens(behaviour.doubt) ? nil : (PushOutcome(.accepted, status: 200), delay)
  }

  /// Whether the device with the handle is gone: always the same share of them.
  static func isGone(_ handle: String, of share: Double) -> Bool {
    share > 0 && Double(FNV1a.hash(handle.utf8) % 10_000) < share * 10_000
  }
}

/// A push service as one process sees it.
struct ServiceConnection: PushSender {
  private let service: PushServiceModel
  private let process: SimulatedProcess
  private let accounts: Accounts
  private let promises: Promises

  init(of process: SimulatedProcess, to service: PushServiceModel, _ accounts: Accounts, _ promises: Promises) {
    self.service = service
    self.process = process
    self.accounts = accounts
    self.promises = promises
  }

  var platform: Platform { service.platform }
  var readinessProblem: String? { nil }

  /// The payload is the send's id, by which the world knows what arrives.
  func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    RenderedPush(headers: [], body: Array("\(send.id)".utf8))
  }

  func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    guard !process.isDead else { return }
    let service = service
    let process = process
    let id = Promises.Service(hub: service.hub, platform: platform)
    for push in pushes {
      accounts.handedOver(push, by: process.name, at: process.now())
      if let send = accounts.send(of: push) { promises.handedOver(push, of: send, by: process.name, to: id) }
      let answer = Once()
      let complete = { [promises] (outcome: PushOutcome) in
        guard answer.pass() else { return }
        promises.answered(push, outcome, by: process.name, from: id)
        completion([PushResult(ticket: push.ticket, outcome: outcome)])
      }
      service.world.after(service.world.random(.milliseconds(1)...(.milliseconds(5)))) {
        guard !process.cut.contains(.services), let (outcome, delay) = service.take(push) else { return }
        process.after(delay) {
          accounts.timed(push)
          complete(outcome)
        }
      }
      process.after(PushServiceModel.timeout) { complete(PushOutcome(.unknown, reason: "Timeout")) }
    }
  }

  func run() async throws {}
}
