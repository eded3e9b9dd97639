import FanfareCore
import FoundationEssentials
import PushSimulator
import Synchronization

/// The invented service as the simulator plays it.
final class SimulatedPager: SimulatedPushService {
  /// An account at the service: a secret.
  struct App: SimulatedApp {
    let secret: String

    static func generate() -> App { App(secret: RegistrationID.random().description) }
    init(secret: String) { self.secret = secret }
    init(files read: (String) throws -> Data) throws {
      secret = String(decoding: try read("pager.txt"), as: UTF8.self)
    }

    func files(_ endpoints: SimulatorEndpoints?) -> [String: Data] { ["pager.txt": Data(secret.utf8)] }

    func keys(_ endpoints: SimulatorEndpoints) -> [String: String] {
      ["pager.secretFile": "pager.txt", "pager.url": endpoints.httpsURL, "pager.trustRootsFile": "ca.pem"]
    }
  }

  static let platform = Pager.platform
  static let prefixes = [
    HandlePrefix(platform, "0410", .answer(status: 410, reason: "NoSuchNumber"), "410 NoSuchNumber")
  ]

  private let app: Mutex<App>
  private let injector: FaultInjector

  init(_ configuration: SimulatorConfiguration, app: App, injector: FaultInjector) {
    self.app = Mutex(app)
    self.injector = injector
  }

  func replaceKey() -> App {
    app.withLock { app in
      app = .generate()
      return app
    }
  }

  func reaction(to request: SimulatedRequest) -> Reaction? {
    let path = "/page/"
    guard request.path.hasPrefix(path) else { return nil }
    let handle = String(request.path.dropFirst(path.count))
    let isKnown = request["authorization"] == app.withLock { $0.secret }
    return injector.reaction(
      of: SimulatedService(Self.platform), handle: handle,
      refusal: isKnown ? nil : ServiceAnswer(status: 401), render: { ServiceAnswer(status: $0.status) }
    ) {
      injector.store.accept(
        ReceivedNotification(
          platform: Self.platform, handle: handle, time: SystemWallClock().now(), pushID: request["pager-id"],
          headers: request.kept, payload: request.body))
      return ServiceAnswer(status: 200, isAccepted: true)
    }
  }
}

extension Pager: SimulatedPlatform {
  typealias Simulated = SimulatedPager
}
