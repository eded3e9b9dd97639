import FanfareCore
import NIOCore

/// Pushes that wait for their turn, and how many are on their way: a value that decides, under the sender's lock.
///
/// Hosts take turns. One that has not answered gets no more than a quarter of the places, and all such hosts together
/// get no more than half: channels are what devices say they are, and those of hosts that nobody finds must leave room
/// for the others. A host that has answered and then falls silent may hold all places until the first of its deadlines.
/// Of what waits for a host, pushes of broadcasts stand behind single ones, and are every eighth while both wait.
struct WNSQueue: Sendable {
  /// One push, ready to be sent.
  struct Item: Sendable {
    let push: Push
    let channel: ChannelURI
    let token: AccessToken
    let deadline: NIODeadline
    let batch: WNSBatch
  }

  /// What there is for one host; kept only while something waits or is on its way.
  private struct Host {
    private var single = WNSLine<Item>()
    private var bulk = WNSLine<Item>()
    /// How many single ones were taken in a row while others waited.
    private var run = 0
    var inFlight = 0
    /// Whether its last word was an answer.
    var answers = false
    var isInTurn = false
    /// What is on its way and may wait in vain.
    var unprovenInFlight: Int { answers ? 0 : inFlight }
    var isIdle: Bool { single.isEmpty && bulk.isEmpty }

    mutating func append(_ item: Item) {
      if item.push.isBulk { bulk.append(item) } else { single.append(item) }
    }

    mutating func popFirst() -> Item? {
      guard !bulk.isEmpty else { return single.popFirst() }
      guard run < WNSQueue.share - 1, let item = single.popFirst() else {
        run = 0
        return bulk.popFirst()
      }
      run += 1
      return item
    }

    mutating func removeAll() -> [Item] {
      defer { (single, bulk) = (WNSLine(), WNSLine()) }
      return Array(single.waiting) + bulk.waiting
    }
  }

  /// Of so many pushes that are taken while both kinds wait, one is a broadcast's.
  private static let share = 8
  /// So long after an answer of another host a failure says nothing about the service.
  static let proofOfService: TimeAmount = .seconds(10)

  private var hosts: [String: Host] = [:]
  /// The hosts of which something may be taken.
  private var turns = WNSLine<String>()
  /// Of these, the ones that have to wait until fewer hosts without an answer hold places.
  private var heldBack = WNSLine<String>()
  private var waitingCount = 0
  private var unprovenInFlight = 0
  /// The last answers of the two hosts that answered last, so that there is one of another host than any.
  private var lastAnswers: [(host: String, at: NIODeadline)] = []
  private let maximumInFlight: Int
  private let maximumWaiting: Int
  private(set) var inFlight = 0
  private(set) var isClosed = false

  init(maximumInFlight: Int, maximumWaiting: Int) {
    self.maximumInFlight = maximumInFlight
    self.maximumWaiting = maximumWaiting
  }

  /// Whether it is closed and nothing is on its way.
  var isFinished: Bool { isClosed && inFlight == 0 }

  /// Takes items in; gives back those for which there is no room.
  mutating func append(_ items: [Item]) -> [Item] {
    guard !isClosed else { return items }
    let room = max(maximumWaiting - waitingCount, 0)
    for item in items.prefix(room) {
      waitingCount += 1
      change(item.channel.host) { $0.append(item) }
      giveTurn(item.channel.host)
    }
    return Array(items.dropFirst(room))
  }

  /// The next item, which is on its way from now on; nil when there is none, or as many are on their way as may.
  mutating func take() -> Item? {
    guard inFlight < maximumInFlight, let name = nextInTurn() else { return nil }
    let item = change(name) { host -> Item? in
      host.isInTurn = false
      guard let item = host.popFirst() else { return nil }
      host.inFlight += 1
      return item
    }
    guard let item else { return nil }
    inFlight += 1
    waitingCount -= 1
    giveTurn(name)
    return item
  }

  /// An item for this host has ended at `now`: with an answer, or without; nil where nothing was asked of the host.
  mutating func ended(_ name: String, answered: Bool?, now: NIODeadline) {
    inFlight -= 1
    if answered == true { lastAnswers = lastAnswers.filter { $0.host != name }.suffix(1) + [(name, now)] }
    let (isOver, isProven) = change(name) { host in
      let answeredBefore = host.answers
      host.inFlight -= 1
      if let answered { host.answers = answered }
      return (host.inFlight == 0 && host.isIdle, host.answers && !answeredBefore)
    }
    if isProven {
      // It may be among them.
      while let held = heldBack.popFirst() { turns.append(held) }
    }
    if isOver {
      hosts[name] = nil
    } else {
      giveTurn(name)
    }
  }

  /// Whether another host than this one has answered lately, so that it is not the service that cannot be reached.
  func othersAnswer(than name: String, now: NIODeadline) -> Bool {
    lastAnswers.contains { $0.host != name && now - $0.at < Self.proofOfService }
  }

  /// Whether this host has answered lately, or answers still.
  func answers(_ name: String, now: NIODeadline) -> Bool {
    hosts[name]?.answers == true || lastAnswers.contains { $0.host == name && now - $0.at < Self.proofOfService }
  }

  /// Takes nothing any more, and gives back what was waiting.
  mutating func close() -> [Item] {
    isClosed = true
    waitingCount = 0
    turns = WNSLine()
    heldBack = WNSLine()
    return Array(hosts.keys).flatMap { name in change(name) { $0.removeAll() } }
  }

  /// Changes what there is for a host, in its place.
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

  /// The host of which something is taken next.
  private mutating func nextInTurn() -> String? {
    let hasRoom = unprovenInFlight < max(maximumInFlight / 2, 1)
    if hasRoom, let name = heldBack.popFirst() { return name }
    while let name = turns.popFirst() {
      if hasRoom || hosts[name]?.answers == true { return name }
      heldBack.append(name)
    }
    return nil
  }

  private mutating func giveTurn(_ name: String) {
    let (all, few) = (maximumInFlight, max(maximumInFlight / 4, 1))
    let isNext = change(name) { host in
      guard !host.isInTurn, !host.isIdle, host.inFlight < (host.answers ? all : few) else { return false }
      host.isInTurn = true
      return true
    }
    if isNext { turns.append(name) }
  }
}
