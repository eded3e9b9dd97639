import FanfareCore

/// Decides between what a service should answer and what a fault makes of it, and counts the outcome.
///
/// The order: an ordered fault, then what is wrong with the request, then the fault that the handle brings with it,
/// then acceptance.
struct FaultInjector: Sendable {
  let store: DeviceStore
  let faults: FaultRegistry
  let honoursHandlePrefixes: Bool

  /// The reaction to one request. `refusal` is what the service answers because something is wrong with the request;
  /// `render` gives a fault's answer the service's form; `accept` takes the request and answers, and is called at most
  /// once, only when it is to be taken.
  func reaction(
    of service: SimulatedService, platform: Platform?, handle: String, refusal: ServiceAnswer?,
    render: (FaultAnswer) -> ServiceAnswer, accept: () -> ServiceAnswer
  ) -> Reaction {
    let effects = faults.effects(on: service, handle: handle)
    var action = effects?.ending
    if action == nil, refusal == nil, honoursHandlePrefixes, let platform {
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
    // What is accepted counts itself where it is kept.
    case .answer(let answer) where answer.isAccepted: break
    case .answer(let answer): store.count(answer.label, by: service, handle: handle)
    case .silence: store.count("silence", by: service, handle: handle)
    case .dropConnection: store.count("connection dropped", by: service, handle: handle)
    case .reset(let code): store.count("reset \(code)", by: service, handle: handle)
    }
  }
}

/// An answer ordered by a fault, before its service gives it the service's form.
struct FaultAnswer: Sendable {
  let status: Int
  let reason: String?
  let retryAfter: Int?
  let timestamp: UnixTime?

  /// `Retry-After`, where there is one.
  var headers: [HeaderField] { retryAfter.map { [HeaderField("retry-after", String($0))] } ?? [] }
}
