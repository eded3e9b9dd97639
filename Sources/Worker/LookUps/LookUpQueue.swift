import DequeModule
import FanfareCore

/// The devices to look up in the registry: those of new items, and those whose owner is rechecked.
///
/// *Idle* → *asking* (one request is open) → *idle*, or, when the registry cannot be asked, *backing off*: the same
/// tickets are looked up again after a growing delay. Rechecks go first, because each holds a place among the pushes; a
/// quarter of a request is reserved for new items. After a failure the next request has half as many look-ups, so that
/// one that always fails comes to stand alone. Such a *suspect* is then asked for rarely, and always alone.
///
/// Invariant: if the failure count is above 0, a time is set before which the registry is not asked.
struct LookUpQueue: Sendable {
  /// Items whose devices are to be looked up.
  private var newItems: Deque<Ticket> = []
  /// Devices whose owner is to be looked up again.
  private var rechecks: Deque<Recheck> = []
  /// Look-ups that have failed alone, by the time of their next request.
  private var suspects = DeadlineQueue<Suspect>()
  /// The most look-ups in the next request; nil: no failure has lowered it.
  private var batch: Int?
  private var isAsking = false
  /// How often in a row the registry could not be asked.
  private(set) var failures = 0
  private var notBefore: Int64 = 0
  /// How often in a row a look-up has failed alone.
  private var failedAlone = 0
  private static let backoff = Backoff(first: .milliseconds(100), limit: .seconds(5))
  /// Of a look-up that failed alone.
  private static let suspicion = Backoff(first: .milliseconds(100), limit: .seconds(60))

  private struct Recheck: Sendable {
    let ticket: Ticket
    /// Whether only the device is looked up, and not all devices of its user.
    let isAlone: Bool
  }

  private struct Suspect: Sendable {
    let entry: LookUp.Entry
    let query: AudienceQuery
    let failures: Int
  }

  mutating func append(_ ticket: Ticket) { newItems.append(ticket) }
  /// `isAlone`: the user has too many devices to look all of them up.
  mutating func appendRecheck(_ ticket: Ticket, isAlone: Bool = false) {
    rechecks.append(Recheck(ticket: ticket, isAlone: isAlone))
  }

  /// Whether a request may be made now.
  func mayAsk(at uptime: Int64) -> Bool { !isAsking && uptime >= notBefore }

  /// Takes out the next new item.
  mutating func popNew() -> Ticket? { newItems.popFirst() }

  /// The most queries in the next request.
  func limit(_ most: Int) -> Int { min(batch ?? most, most) }

  /// Whether a suspect may be asked for: the last request was answered, or nothing else waits.
  var mayAskSuspect: Bool { failedAlone == 0 || (newItems.isEmpty && rechecks.isEmpty) }

  /// Makes a request of the suspect that is due, if there is one.
  mutating func popSuspect(of items: ItemTable, at now: Moment) -> LookUp? {
    while let suspect = suspects.popDue(at: now.uptime) {
      let ticket = suspect.entry.ticket
      let isNeeded =
        switch suspect.entry.purpose {
        case .devices: items.isResolving(ticket)
        case .recheck: items.phase(of: ticket) == .checking
        }
      guard isNeeded else { continue }
      if suspect.entry.purpose == .devices, now.wall >= items[ticket.slot].expiresAt {
        // It settles as expired when it is its turn.
        newItems.append(ticket)
        continue
      }
      var lookUp = LookUp(askedAt: now.uptime, suspicions: suspect.failures)
      lookUp.entries = [LookUp.Entry(purpose: suspect.entry.purpose, ticket: ticket, query: 0)]
      lookUp.queries = [suspect.query]
      return lookUp
    }
    return nil
  }

  /// Adds the rechecks to a request, of `batch` queries at most.
  mutating func addRechecks(to lookUp: inout LookUp, of items: ItemTable, batch: Int) {
    var last: (slot: Int, query: Int)?
    let most = batch - (newItems.isEmpty ? 0 : batch / 4)
    while lookUp.queries.count < most, let recheck = rechecks.popFirst() {
      let ticket = recheck.ticket
      guard items.phase(of: ticket) == .checking, let send = items[ticket.slot].send else { continue }
      // A page of a user with many devices is like one of a tag.
      let isForOneUser = !send.isBroadcast && !items[ticket.slot].isPage && !recheck.isAlone
      if isForOneUser, let last, last.slot == ticket.slot {
        lookUp.entries.append(LookUp.Entry(purpose: .recheck, ticket: ticket, query: last.query))
        continue
      }
      let target = items[ticket.slot].devices[ticket.device].target
      // Of a tag's many devices only this one is looked up; of a user's few devices all are, because only that shows
      // the owner. One answer serves all devices of a user, whatever their platforms.
      let audience = isForOneUser ? send.audience : .registration(target.registration)
      let platforms = isForOneUser ? send.coveredPlatforms : PlatformSet(target.platform)
      last = (ticket.slot, lookUp.queries.count)
      lookUp.entries.append(LookUp.Entry(purpose: .recheck, ticket: ticket, query: lookUp.queries.count))
      lookUp.queries.append(
        AudienceQuery(
          hub: send.hub, audience: audience, platforms: platforms, createdBefore: isForOneUser ? nil : send.acceptedAt,
          template: send.content.template?.source))
    }
  }

  /// Notes that a request is open.
  mutating func asked() { isAsking = true }

  /// Notes the registry's answer.
  mutating func answered() {
    (isAsking, failures, failedAlone) = (false, 0, 0)
    if let batch { self.batch = batch < 1 << 20 ? batch * 2 : nil }
  }

  /// Queues the same tickets again because the registry could not be asked.
  /// The delay grows only with look-ups that fail alone: a registry that cannot be reached soon leaves no others.
  mutating func failed(_ lookUp: LookUp, at uptime: Int64) {
    isAsking = false
    let isAlone = lookUp.queries.count == 1
    notBefore = uptime + Self.backoff.wait(isAlone ? failedAlone : 0).milliseconds
    failures += 1
    batch = max(1, lookUp.queries.count / 2)
    if isAlone {
      failedAlone += 1
      // Others may succeed: this one must not be asked for before them again and again.
      let delay = Self.suspicion.wait(lookUp.suspicions).milliseconds
      for entry in lookUp.entries {
        suspects.insert(
          Suspect(entry: entry, query: lookUp.queries[0], failures: lookUp.suspicions + 1), due: uptime + delay)
      }
      return
    }
    for entry in lookUp.entries.reversed() {
      switch entry.purpose {
      case .devices: newItems.prepend(entry.ticket)
      case .recheck:
        let isAlone = if case .registration = lookUp.queries[entry.query].audience { true } else { false }
        rechecks.prepend(Recheck(ticket: entry.ticket, isAlone: isAlone))
      }
    }
  }

  /// Rejects an unusable answer: the item is looked up again, visibly, until it expires.
  mutating func refuse(_ ticket: Ticket, at uptime: Int64) {
    failures += 1
    notBefore = uptime + 5000
    newItems.append(ticket)
  }

  func checkInvariants() -> [String] {
    failures > 0 && notBefore == 0 ? ["\(failures) look-ups have failed without a backoff"] : []
  }
}

/// A request to the registry, and the use of each answer.
struct LookUp: Sendable {
  enum Purpose: Sendable {
    /// The devices of a new item.
    case devices
    /// Whether a device still belongs to the user the send is for.
    case recheck
  }

  struct Entry: Sendable {
    let purpose: Purpose
    let ticket: Ticket
    /// The index of the query whose answer it uses.
    let query: Int
  }

  /// Uptime of the request: the answer may be out of date from then on.
  let askedAt: Int64
  /// How often its only query has failed alone.
  var suspicions = 0
  var queries: [AudienceQuery] = []
  var entries: [Entry] = []
}

/// The registry's answer.
struct LookUpAnswer: Sendable {
  let lookUp: LookUp
  /// The devices per query, with a `last` where there may be more; nil when the registry could not be asked.
  let found: [AudiencePage]?
}

/// A device addressed by a handle that the registry does not know.
enum UnregisteredDevice {
  /// The target to push to.
  /// Its id is derived from hub, platform and handle, so that every worker and every repetition gives the device the
  /// same id: FNV-1a of the text from two starting points, as a UUID version
  /// 8.
  static func target(hub: HubName, platform: Platform, handle: String, at now: UnixTime) -> Target {
    let normalized = DeviceHandle.normalized(handle, platform: platform)
    func hash(_ start: UInt64) -> UInt64 {
      var hash = start
      for text in [hub.rawValue, platform.name, normalized] {
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        // A byte that occurs in no UTF-8 keeps the parts apart.
        hash = (hash ^ 0xFF) &* 0x0000_0100_0000_01B3
      }
      return hash ^ hash >> 32
    }
    let id = RegistrationID(
      high: (hash(0xCBF2_9CE4_8422_2325) & 0xFFFF_FFFF_FFFF_0FFF) | 0x8000,
      low: (hash(0x8422_2325_CBF2_9CE4) & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
    return Target(registration: id, platform: platform, handle: normalized, registeredAt: now)
  }
}
