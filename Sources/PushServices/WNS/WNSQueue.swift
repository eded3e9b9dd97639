import FanfareCore
import NIOCore

/// Pushes that wait for their turn, and how many are on their way: a value that decides, under the sender's lock.
struct WNSQueue: Sendable {
  /// One push, ready to be sent.
  struct Item: Sendable {
    let push: Push
    let channel: ChannelURI
    let token: AccessToken
    let deadline: NIODeadline
    let batch: WNSBatch
  }

  private var waiting: [Item] = []
  private var head = 0
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
    let room = max(maximumWaiting - (waiting.count - head), 0)
    waiting.append(contentsOf: items.prefix(room))
    return Array(items.dropFirst(room))
  }

  /// The next item, which is on its way from now on; nil when there is none, or as many are on their way as may.
  mutating func take() -> Item? {
    guard inFlight < maximumInFlight, head < waiting.count else { return nil }
    inFlight += 1
    defer {
      head += 1
      if head == waiting.count {
        waiting.removeAll(keepingCapacity: true)
        head = 0
      } else if head > 1024, head * 2 > waiting.count {
        waiting.removeFirst(head)
        head = 0
      }
    }
    return waiting[head]
  }

  /// An item has ended.
  mutating func ended() { inFlight -= 1 }

  /// Takes nothing any more, and gives back what was waiting.
  mutating func close() -> [Item] {
    isClosed = true
    defer {
      waiting = []
      head = 0
    }
    return Array(waiting[head...])
  }
}
