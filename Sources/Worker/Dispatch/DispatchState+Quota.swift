import FanfareCore

extension DispatchState {
  /// A ticket was taken from the sender's queue, or its device was looked up: it counts if it is on its way to the
  /// service. What is being looked up does not count yet: it may take longer than what is reserved now lasts.
  mutating func spendQuota(of sender: Int, for ticket: Ticket) {
    switch phase(of: ticket) {
    case .inFlight: senders[sender].quota.spend()
    case .checking, .queued, .resting, .waiting, .done, .putOff, .withdrawn, nil: break
    }
  }

  /// Puts off the tail of what waits for a shared quota, beyond what that lets through while anything may wait in
  /// memory, until its turn: it would take the room of what is for others. A page stays, for it is small, and all of a
  /// broadcast would go round through the retry topics if its pages did; so does what pages have put off, of which no
  /// more than a page is here for each service.
  mutating func putOffWhatExceedsItsQuota(at now: Moment, into effects: inout Effects) {
    guard let shortest = topics.retries.first?.delay else { return }
    for sender in senders.indices where senders[sender].gate.state == .closed {
      guard let quota = senders[sender].quota.quota else { continue }
      // However little that is, some stay: what comes back would otherwise leave again before its turn.
      let limit = max(PushQueue.share, quota.pushes(in: configuration.longestRest))
      let (count, singles) = (senders[sender].queue.count, senders[sender].queue.singles)
      guard count > limit else { continue }
      // Each lane keeps its share, and what the other has no use for.
      let share = limit / PushQueue.share
      var (singleRoom, bulkRoom) = (max(limit - share, limit - (count - singles)), max(share, limit - singles))
      var leaving: [Ticket] = []
      for ticket in senders[sender].queue.removeAll() where phase(of: ticket) == .queued {
        let stays = items[ticket.slot].isPage || items[ticket.slot].isReturned
        let hasRoom = ticket.isBulk ? bulkRoom > 0 || stays : singleRoom > 0
        if ticket.isBulk { bulkRoom -= 1 } else { singleRoom -= 1 }
        if hasRoom { senders[sender].queue.append(ticket) } else { leaving.append(ticket) }
      }
      for (number, ticket) in leaving.enumerated() where phase(of: ticket) == .queued {
        let delay = max(shortest, min(quota.time(of: limit + number + 1), Self.longestDelay))
        guard delay + lateness(of: delay) + Self.lastCall < items[ticket.slot].expiresAt - now.wall else {
          // It would not live to see its turn there, and hardly does here.
          if isShortOfRoom {
            letGo(ticket.slot, ticket.device, for: shortest, at: now, into: &effects)
            continue
          }
          senders[sender].queue.append(ticket)
          continue
        }
        putOff(ticket.slot, ticket.device, inOrderFor: delay, at: now, into: &effects)
      }
    }
  }

  /// Has more reserved for the sender if it will need it.
  mutating func askForQuota(of sender: Int, at now: Moment, into effects: inout Effects) {
    let checks = senders[sender].checking
    // What is being looked up leaves in the moment that is answered, or has to be looked up again. Beside that a sender
    // that is stopped has no use for any.
    let needed = checks + (!senders[sender].queue.isEmpty && senders[sender].gate.allowance(at: now.uptime) > 0 ? 1 : 0)
    let isWaiting = needed > 0 && !senders[sender].quota.allowsPush(besides: needed - 1, at: now.wall)
    guard let request = senders[sender].quota.request(isWaiting: isWaiting, checks: checks, at: now.wall) else {
      return
    }
    effects.questions.append(.quota(sender: sender, request.pushes, request.quota, lead: request.lead))
  }
}
