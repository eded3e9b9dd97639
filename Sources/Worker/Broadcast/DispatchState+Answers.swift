import FanfareCore

extension DispatchState {
  /// The store has answered, or could not be asked: then the same is asked again after a delay that grows.
  mutating func answer(_ answer: BroadcastAnswer, at now: Moment, into effects: inout Effects) {
    guard let outcome = answer.outcome else {
      unanswered.insert(answer.question, due: now.uptime + min(5000, 100 << Int64(min(failedQuestions, 6))))
      failedQuestions += 1
      return
    }
    failedQuestions = 0
    switch (answer.question, outcome) {
    case (.survey(let ticket, _, let broadcast, _), .survey(let found, let course, let pages)):
      surveyed(ticket, broadcast, found, course, pages: pages, at: now, into: &effects)
    case (.plan(let ticket, let broadcast, _), .plan(let pages, let isAnnounced)):
      planned(ticket, broadcast, pages: pages, isAnnounced: isAnnounced, at: now, into: &effects)
    case (.announce(let ticket, _), .noted): if isCurrent(ticket) { conclude(ticket.slot) }
    case (.finishedPages(let ticket, _, let range), .pages(let finished)):
      resumeSegment(ticket, range, finished: finished, into: &effects)
    case (.page(let ticket, _, let slice, _, let askedAt), .devices(let page)):
      found(ticket, page, in: slice, askedAt: askedAt, at: now)
    case (.reserve(let ticket, let count, _, _), .moment(let moment)): reserved(ticket, count, from: moment)
    case (.permits(let parked, let count, _, let perSecond), .moment(let moment)):
      permitted(parked, Permits(count: count, from: moment, perSecond: perSecond), at: now, into: &effects)
    case (.finish(let ticket, _, _), .noted): finished(ticket, into: &effects)
    case (.courses(let broadcasts), .courses(let steerings)): steered(broadcasts, steerings, at: now)
    case (.course(let parked, _), .courses(let steerings)):
      resume(parked, of: steerings.first?.state ?? .running, at: now, into: &effects)
    case (.steer(let broadcast, _), .courses(let steerings)):
      if courses[broadcast] != nil { courses[broadcast] = steerings.first?.state }
    case (.quota(let sender, let pushes, _, _), .moment(let moment)):
      senders[sender].quota.grant(pushes, from: moment, at: now.wall)
    // `ask` answers each question with what belongs to it.
    default: preconditionFailure("a question about a broadcast has an answer to another")
    }
  }

  /// Puts a question again. Of a send that has expired meanwhile only whether it has a plan is asked: no expiry may be
  /// told of it while its pages run.
  func askAgain(_ question: BroadcastQuestion, at now: Moment, into effects: inout Effects) {
    guard case .survey(let ticket, _, let broadcast, let createdBefore) = question, isCurrent(ticket),
      now.wall >= items[ticket.slot].expiresAt
    else { return effects.questions.append(question) }
    effects.questions.append(.survey(ticket, nil, broadcast, createdBefore: createdBefore))
  }

  /// All of a record is done: its offsets settle.
  mutating func conclude(_ slot: Int) {
    ledger.settle(items[slot].origin)
    for follower in items[slot].followers { ledger.settle(follower) }
    if let key = items[slot].key { recent.settle(key) }
    vacate(slot)
  }
}
