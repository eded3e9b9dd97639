package import FanfareCore

/// What is left of a registration that is gone.
package struct Tombstone: Hashable, Sendable {
  /// Why registrations go.
  package enum Cause: String, CaseIterable, Sendable {
    /// Its user removed it.
    case removed
    /// Another registration holds its handle now; the detail is that one's id.
    case merged
    /// The push service called its handle dead; the detail is the service's reason.
    case dead
    /// Its app was not heard of for too long.
    case expired
  }

  package let cause: Cause
  /// More about the cause, never a handle; empty where there is no more to say.
  package let detail: String
  /// When it went.
  package let at: UnixTime

  package init(cause: Cause, detail: String, at: UnixTime) {
    self.cause = cause
    self.detail = detail
    self.at = at
  }
}
