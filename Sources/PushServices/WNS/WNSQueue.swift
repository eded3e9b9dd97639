import DequeModule
import FanfareCore
import NIOCore
import Synchronization
import TwoLaneQueue

/// The pushes that wait for WNS and the number in flight: a state machine that takes turns between hosts.
///
/// Devices name their own channels, so a host that does not answer must leave room for the others: such a host has at
/// most a quarter of the places in flight, and all of them together at most half. A host that has answered and then
/// falls silent may hold every place until the first of its deadlines. Each host has a lane for single pushes and one
/// for bulk (`TwoLaneQueue`). Guarded by the sender's lock.
struct WNSQueue: Sendable {
  /// One push, ready to be sent.
  struct Item: Sendable {
    let push: Push
    let channel: ChannelURI
    let token: AccessToken
    let deadline: NIODeadline
    let batch: WNSBatch
  }

  /// The state of one host; kept only while pushes for it wait or are in flight.
  private struct Host {
    var waiting = TwoLaneQueue<Item>()
    var inFlight = 0
    /// Whether its last request was answered.
    var answers = false
    /// Whether it stands in `turns` or `awaitingCapacity`.
    var isInTurn = false
    /// Pushes in flight that may wait in vain.
    var unprovenInFlight: Int { answers ? 0 : inFlight }
  }

  /// For this long after an answer of another host, a failure says nothing about the service.
  static let proofOfService: TimeAmount = .seconds(10)

  /// How many hosts are remembered as hosts of WNS.
  static let maximumKnownHosts = 256

  private var hosts: [String: Host] = [:]
  /// The hosts that may send, in the order of their turns.
  private var turns: Deque<String> = []
  /// The hosts without an answer that wait until such hosts hold fewer places.
  private var awaitingCapacity: Deque<String> = []
  private var waitingCount = 0
  private var unprovenInFlight = 0
  /// The last answers of the two hosts that answered last: one of them is always from another host than a given one.
  private var lastAnswers: [(host: String, at: NIODeadline)] = []
  /// The hosts that have answered before; WNS has a few dozen.
  private var knownHosts: Set<String> = []
  private let maximumInFlight: Int
  private let maximumWaiting: Int
  private(set) var inFlight = 0
  private(set) var isClosed = false

  init(maximumInFlight: Int, maximumWaiting: Int) {
    self.maximumInFlight = maximumInFlight
    self.maximumWaiting = maximumWaiting
  }

  /// Whether it is closed and nothing is in flight.
  var isFinished: Bool { isClosed && inFlight == 0 }

  /// Adds items; returns those for which there is no room.
  mutating func append(_ items: [Item]) -> [Item] {
    guard !isClosed else { return items }
    let room = max(maximumWaiting - waitingCount, 0)
    for item in items.prefix(room) {
      waitingCount += 1
      change(item.channel.host) { $0.waiting.append(item, isBulk: item.push.isBroadcast) }
      giveTurn(item.channel.host)
    }
    return Array(items.dropFirst(room))
  }

  /// Takes the next item, which is in flight from now on; nil if none may be sent now.
  mutating func take() -> Item? {
    guard inFlight < maximumInFlight, let name = nextInTurn() else { return nil }
    let item = change(name) { host -> Item? in
      host.isInTurn = false
      guard let item = host.waiting.popFirst() else { return nil }
      host.inFlight += 1
      return item
    }
    guard let item else { return nil }
    inFlight += 1
    waitingCount -= 1
    giveTurn(name)
    return item
  }

  /// An item for this host ended at `now`. `answered` is nil if no request was made.
  mutating func ended(_ name: String, answered: Bool?, now: NIODeadline) {
    inFlight -= 1
    if answered == true {
      lastAnswers = lastAnswers.filter { $0.host != name }.suffix(1) + [(name, now)]
      // The hosts in use enter again with their next answers.
      if knownHosts.count == Self.maximumKnownHosts { knownHosts = [] }
      knownHosts.insert(name)
    }
    let (isOver, isProven) = change(name) { host in
      let answeredBefore = host.answers
      host.inFlight -= 1
      if let answered { host.answers = answered }
      return (host.inFlight == 0 && host.waiting.isEmpty, host.answers && !answeredBefore)
    }
    if isProven {
      // This host may be among them.
      turns.append(contentsOf: awaitingCapacity)
      awaitingCapacity.removeAll()
    }
    if isOver {
      hosts[name] = nil
    } else {
      giveTurn(name)
    }
  }

  /// Whether another host has answered within `proofOfService`, so that the service as a whole is reachable.
  func othersAnswer(than name: String, now: NIODeadline) -> Bool {
    lastAnswers.contains { $0.host != name && now - $0.at < Self.proofOfService }
  }

  /// Whether a failed connection to this host says nothing about the service: others answer, or only this one never
  /// has.
  ///
  /// A registration names its host, which need not exist. Once any host has answered, a host that never has is no
  /// evidence of an outage.
  func isAtFault(_ name: String, now: NIODeadline) -> Bool {
    othersAnswer(than: name, now: now) || (!knownHosts.isEmpty && !knownHosts.contains(name))
  }

  /// Whether this host answered its last request, or any request within `proofOfService`.
  func answers(_ name: String, now: NIODeadline) -> Bool {
    hosts[name]?.answers == true || lastAnswers.contains { $0.host == name && now - $0.at < Self.proofOfService }
  }

  /// Closes the queue and returns the items that were waiting.
  mutating func close() -> [Item] {
    isClosed = true
    waitingCount = 0
    turns = []
    awaitingCapacity = []
    return Array(hosts.keys).flatMap { name in change(name) { $0.waiting.removeAll() } }
  }

  /// Changes a host's state in place and keeps `unprovenInFlight` in step.
  private mutating func change<Result>(_ name: String, _ body: (inout Host) -> Result) -> Result {
    func apply(_ host: inout Host) -> (result: Result, unproven: Int) {
      let former = host.unprovenInFlight
      let result = body(&host)
      return (result, host.unprovenInFlight - former)
    }
    let change = apply(&hosts[name, default: Host()])
    unprovenInFlight += change.unproven
    return change.result
  }

  /// Takes the host whose turn it is.
  private mutating func nextInTurn() -> String? {
    let hasRoom = unprovenInFlight < max(maximumInFlight / 2, 1)
    if hasRoom, let name = awaitingCapacity.popFirst() { return name }
    while let name = turns.popFirst() {
      if hasRoom || hosts[name]?.answers == true { return name }
      awaitingCapacity.append(name)
    }
    return nil
  }

  private mutating func giveTurn(_ name: String) {
    let (all, few) = (maximumInFlight, max(maximumInFlight / 4, 1))
    let isNext = change(name) { host in
      guard !host.isInTurn, !host.waiting.isEmpty, host.inFlight < (host.answers ? all : few) else { return false }
      host.isInTurn = true
      return true
    }
    if isNext { turns.append(name) }
  }
}

/// The pushes of one submission; reports ends that come together as one batch.
final class WNSBatch: Sendable {
  private let pending = Mutex<[PushResult]>([])
  private let eventLoop: any EventLoop
  private let completion: @Sendable ([PushResult]) -> Void

  init(eventLoop: any EventLoop, completion: @escaping @Sendable ([PushResult]) -> Void) {
    self.eventLoop = eventLoop
    self.completion = completion
  }

  /// Reports on the event loop, never from inside this call: all results of one turn together.
  func report(_ results: [PushResult]) {
    guard !results.isEmpty else { return }
    let isFirst = pending.withLock { pending in
      defer { pending.append(contentsOf: results) }
      return pending.isEmpty
    }
    guard isFirst else { return }
    eventLoop.execute { [self] in
      let results = pending.withLock { pending in
        defer { pending = [] }
        return pending
      }
      completion(results)
    }
  }
}
