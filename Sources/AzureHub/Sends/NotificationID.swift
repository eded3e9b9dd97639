import FanfareCore
import FrontEnd

/// The id of a notification: of a send, or of a batch with the number of its sends.
struct NotificationID: Hashable, Sendable, LosslessStringConvertible {
  let id: SendID
  /// Nil for a single send.
  let count: Int?

  init(_ id: SendID, count: Int? = nil) { (self.id, self.count) = (id, count) }

  init?(_ text: String) {
    let bytes = text.utf8
    guard bytes.count >= 36, let id = SendID(String(text.prefix(36))) else { return nil }
    self.id = id
    let rest = text.dropFirst(36)
    if rest.isEmpty {
      count = nil
    } else {
      guard rest.first == "-", let count = Int(rest.dropFirst()), (1...DirectBatch.maximumCount).contains(count) else {
        return nil
      }
      self.count = count
    }
  }

  var description: String { count.map { "\(id)-\($0)" } ?? "\(id)" }

  /// The sends.
  var sends: [SendID] { count.map { (0..<$0).map { .member(of: id, at: $0) } } ?? [id] }

  /// When it was accepted, by its id; nil for an id that is not from a front end.
  var acceptedAt: UnixTime? {
    let version = id.high >> 12 & 0xF
    return version == 7 || version == 8 ? UnixTime(milliseconds: Int64(id.high >> 16)) : nil
  }
}
