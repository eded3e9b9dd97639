import FanfareCore
import NIOCore

/// Pushes that wait for their turn, and how many are on their way: a value that decides, under the sender's lock.
///
/// Hosts take turns. One that has not answered gets no more than a quarter of the places: channels are what devices say they are,
/// and those of a host that nobody finds, or that is silent, must leave room for the others.
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
    var waiting = WNSLine<Item>()
    var inFlight = 0
    /// Whether its last word was an answer.
    var answers = false
    var isInTurn = false
  }

  /// So long after an answer of another host a failure says nothing about the service.
  static let proofOfService: TimeAmount = .seconds(10)

  private var hosts: [String: Host] = [:]
  /// The hosts of which something may be taken.
  private var turns = WNSLine<String>()
  private var waitingCount = 0
  private var lastAnswer: (host: String, at: NIODeadline)?
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
      change(item.channel.host) { $0.waiting.append(item) }
      giveTurn(item.channel.host)
    }
    return Array(items.dropFirst(room))
  }

  /// The next item, which is on its way from now on; nil when there is none, or as many are on their way as may.
  mutating func take() -> Item? {
    guard inFlight < maximumInFlight, let name = turns.popFirst() else { return nil }
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

  /// An item for this host has ended at `now`: with an answer, or without; nil where nothing was asked of the host.
  mutating func ended(_ name: String, answered: Bool?, now: NIODeadline) {
    inFlight -= 1
    if answered == true { lastAnswer = (name, now) }
    let isOver = change(name) { host in
      host.inFlight -= 1
      if let answered { host.answers = answered }
      return host.inFlight == 0 && host.waiting.isEmpty
    }
    if isOver {
      hosts[name] = nil
    } else {
      giveTurn(name)
    }
  }

  /// Whether another host than this one has answered lately, so that it is not the service that cannot be reached.
  func othersAnswer(than name: String, now: NIODeadline) -> Bool {
    lastAnswer.map { $0.host != name && now - $0.at < Self.proofOfService } ?? false
  }

  /// Takes nothing any more, and gives back what was waiting.
  mutating func close() -> [Item] {
    isClosed = true
    waitingCount = 0
    turns = WNSLine()
    let waiting = hosts.values.flatMap(\.waiting.waiting)
    for name in hosts.keys { change(name) { $0.waiting = WNSLine() } }
    return waiting
  }

  /// Changes what there is for a host, in its place.
  private mutating func change<Result>(_ name: String, _ body: (inout Host) -> Result) -> Result {
    body(&hosts[name, default: Host()])
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
