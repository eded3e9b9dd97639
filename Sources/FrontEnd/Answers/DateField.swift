import FanfareCore
import Synchronization

/// The `Date` field of answers, written anew once a second.
final class DateField: Sendable {
  private let latest = Mutex((second: Int64.min, text: ""))

  init() {}

  /// The field's value at a moment.
  func value(at now: UnixTime) -> String {
    latest.withLock { latest in
      if latest.second != now.seconds { latest = (now.seconds, now.httpDate) }
      return latest.text
    }
  }
}
