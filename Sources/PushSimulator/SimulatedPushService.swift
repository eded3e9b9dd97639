package import FanfareCore
import Synchronization

/// A push service that the simulator plays over HTTP/1.1, on the listener of the token endpoints.
///
/// The simulator counts its answers, keeps what it accepts, and injects the ordered faults.
package protocol SimulatedPushService: Sendable {
  static var platform: Platform { get }
  /// Devices that always get the same answer.
  static var prefixes: [HandlePrefix] { get }

  init(_ configuration: SimulatorConfiguration) throws

  /// What the service makes of a request; nil if the request is for another one.
  func judge(_ request: SimulatedRequest) -> SimulatedVerdict?
  /// The service's answer with that status, and its word for the reason if there is one.
  func answer(status: Int, reason: String?) -> (headers: [HeaderField], body: [UInt8])
}

extension SimulatedPushService {
  package static var prefixes: [HandlePrefix] { [] }
}

/// A request to a simulated service.
package struct SimulatedRequest: Sendable {
  package let method: String
  /// Path and query, byte for byte.
  package let target: String
  package let headers: [HeaderField]
  package let body: [UInt8]

  /// The value of the first field with this name, which is given in lower case.
  package subscript(name: String) -> String? { headers.first { $0.name.lowercased() == name }?.value }
}

/// What a service makes of a push.
package struct SimulatedVerdict: Sendable {
  let handle: String
  let pushID: String?
  /// Nil: it accepts the push.
  let refusal: (status: Int, reason: String)?

  package init(handle: String, pushID: String? = nil, refusal: (status: Int, reason: String)? = nil) {
    (self.handle, self.pushID, self.refusal) = (handle, pushID, refusal)
  }
}

/// The services of this process beside APNs, FCM and WNS. The list is fixed by its first use.
package enum SimulatedPushServices {
  private static let declared = Mutex<(list: [any SimulatedPushService.Type], isFixed: Bool)>(([], false))

  static let all: [any SimulatedPushService.Type] = declared.withLock { declared in
    declared.isFixed = true
    return declared.list
  }

  /// Adds a service. A program does so before it makes a simulator.
  package static func add(_ service: any SimulatedPushService.Type) {
    declared.withLock { declared in
      precondition(!declared.isFixed, "\(service.platform) is added after the simulated services were used")
      declared.list.append(service)
    }
  }
}

extension SimulatedPushService {
  /// The reaction to a request; nil if it is for another service.
  func reaction(to request: SimulatedRequest, _ injector: FaultInjector, at now: UnixTime) -> Reaction? {
    guard let verdict = judge(request) else { return nil }
    let platform = Self.platform
    func render(_ status: Int, _ reason: String?, _ extra: [HeaderField] = [], isAccepted: Bool = false)
      -> ServiceAnswer
    {
      let (headers, body) = answer(status: status, reason: reason)
      return ServiceAnswer(
        status: status, headers: headers + extra, body: body,
        label: reason.map { "\(status) \($0)" } ?? "\(status)", isAccepted: isAccepted)
    }
    return injector.reaction(
      of: SimulatedService(platform), platform: platform, handle: verdict.handle,
      refusal: verdict.refusal.map { render($0.status, $0.reason) }
    ) { fault in
      render(fault.status, fault.reason, fault.headers)
    } accept: {
      injector.store.accept(
        ReceivedNotification(
          platform: platform, handle: verdict.handle, time: now, pushID: verdict.pushID,
          headers: request.headers.filter { $0.name.lowercased() != "authorization" }, payload: request.body))
      return render(200, nil, isAccepted: true)
    }
  }
}
