import FanfareCore
import RDKafka
import Synchronization

/// The consumed and undelivered records of one partition, in order. One task appends, one takes.
final class PartitionBacklog: Sendable {
  /// A record, reduced to the hook's event at once so that a waiting record takes little memory.
  struct Item: Sendable {
    let offset: Int64
    /// Nil if the hook does not want the record, or if it cannot be decoded.
    let event: HookEvent?
  }

  /// The items of one request; the request has events only.
  struct Batch: Sendable {
    let items: ArraySlice<Item>
    var events: [HookEvent] { items.compactMap(\.event) }
  }

  /// An element after each `append`; several may be merged.
  let signals: AsyncStream<Void>
  private let signal: AsyncStream<Void>.Continuation
  private let items = Mutex<[Item]>([])

  init() {
    (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  /// When the oldest waiting event happened.
  var oldest: UnixTime? { items.withLock { $0.lazy.compactMap(\.event).first?.settledAt } }

  func append(_ new: [Item]) {
    items.withLock { $0 += new }
    signal.yield()
  }

  /// The first items with at most `events` events and about `bytes` bytes; nil if none waits. They stay until they are
  /// removed.
  func first(events limit: Int, bytes: Int) -> Batch? {
    items.withLock { items in
      var (events, size, end) = (0, 0, 0)
      for item in items {
        if let event = item.event {
          guard events == 0 || (events < limit && size + event.json.count <= bytes) else { break }
          events += 1
          size += event.json.count
        }
        end += 1
      }
      return end == 0 ? nil : Batch(items: items[..<end])
    }
  }

  func removeFirst(_ count: Int) { items.withLock { $0.removeFirst(count) } }
}
