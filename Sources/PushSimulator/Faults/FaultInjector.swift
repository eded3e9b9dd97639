package import FanfareCore

/// Decides whether a service or a fault answers, and counts the outcome.
///
/// In this order: an ordered fault, the service's refusal, the fault of the handle's prefix, acceptance.
package struct FaultInjector: Sendable {
  package let store: DeviceStore
  let faults: FaultRegistry
  let honoursHandlePrefixes: Bool

  /// The reaction to one request. `refusal` is the service's answer to an invalid request; `render` puts a fault's
  /// answer into the service's form; `accept` accepts the request and answers, and is called at most once.
  package func reaction(
    of service: SimulatedService, handle: String = "", refusal: ServiceAnswer?,
    render: (FaultAnswer) -> ServiceAnswer, accept: () -> ServiceAnswer
  ) -> Reaction {
    let effects = faults.effects(on: service, handle: handle)
    var action = effects?.ending
    if action == nil, refusal == nil, honoursHandlePrefixes, let platform = service.platform {
      action = HandlePrefix.action(for: handle, platform: platform)
    }
    var reaction: Reaction
    switch action {
    case .answer(let status, let reason, let retryAfter, let timestamp):
      reaction = Reaction(
        render(FaultAnswer(status: status, reason: reason, retryAfter: retryAfter, timestamp: timestamp)))
    case .dropConnection:
      reaction = Reaction(ending: .dropConnection)
    case .acceptAndDrop:
      if refusal == nil, accept().isAccepted { store.countUnanswered(service, handle: handle) }
      reaction = Reaction(ending: .dropConnection)
    case .silence:
      reaction = Reaction(ending: .silence)
    case .reset(let code):
      reaction = Reaction(ending: .reset(code))
    case .latency, .goAway, .streamLimit, .refuseHandshake, nil:
      reaction = Reaction(refusal ?? accept())
    }
    if let effects {
      reaction.delay = effects.delay
      reaction.goAway = effects.goAway
      reaction.streamLimit = effects.streamLimit
    }
    count(reaction, service, handle)
    return reaction
  }

  private func count(_ reaction: Reaction, _ service: SimulatedService, _ handle: String) {
    switch reaction.ending {
    // Accepted pushes are counted where they are kept.
    case .answer(let answer) where answer.isAccepted: break
    case .answer(let answer): store.count(answer.label, by: service, handle: handle)
    case .silence: store.count("silence", by: service, handle: handle)
    case .dropConnection: store.count("connection dropped", by: service, handle: handle)
    case .reset(let code): store.count("reset \(code)", by: service, handle: handle)
    }
  }
}

/// An answer ordered by a fault, before it has the service's form.
package struct FaultAnswer: Sendable {
  package let status: Int
  package let reason: String?
  let retryAfter: Int?
  package let timestamp: UnixTime?

  /// `Retry-After`, if there is one.
  package var headers: [HeaderField] { retryAfter.map { [HeaderField("retry-after", String($0))] } ?? [] }
}

/// A service's reaction to one request.
package struct Reaction: Sendable {
  enum Ending: Sendable {
    case answer(ServiceAnswer)
    /// No answer.
    case silence
    /// The connection is dropped.
    case dropConnection
    /// RST_STREAM with this code; in HTTP/1.1 as `dropConnection`.
    case reset(UInt32)
  }

  var ending: Ending
  /// The delay of the answer.
  var delay: Duration = .zero
  /// Whether GOAWAY is sent before the answer.
  var goAway = false
  /// The connection's new stream limit.
  var streamLimit: Int?

  init(_ answer: ServiceAnswer) { ending = .answer(answer) }

  init(ending: Ending) { self.ending = ending }
}

/// An HTTP answer of a service.
package struct ServiceAnswer: Sendable {
  var status: Int
  var headers: [HeaderField] = []
  var body: [UInt8] = []
  /// The name under which it is counted: the status and the service's word.
  var label: String
  /// Whether the push was accepted.
  var isAccepted = false

  package init(
    status: Int, headers: [HeaderField] = [], body: [UInt8] = [], label: String? = nil, isAccepted: Bool = false
  ) {
    (self.status, self.headers, self.body) = (status, headers, body)
    (self.label, self.isAccepted) = (label ?? String(status), isAccepted)
  }
}
