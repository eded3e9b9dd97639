import FanfareCore
import Synchronization

/// Holds every sender of a hub to its quota (GCRA: of each, the one number kept is when what it has posted would have
/// been posted evenly).
///
/// Each front end counts what it is posted itself; several together let a sender that uses them all post that much at
/// each.
final class SenderQuotas: Sendable {
  private struct State {
    /// By the bytes of the sender's name, in Unix microseconds: names that merely look the same are two users, as
    /// everywhere.
    var evenUntil: [[UInt8]: Int64] = [:]
    /// From how many senders on it is worthwhile to look for those that have paused.
    var sweepSize = SenderQuotas.smallestSweep
  }

  private static let smallestSweep = 4096

  private let quota: SendQuota
  private let state = Mutex(State())

  init(_ quota: SendQuota) {
    self.quota = quota
  }

  /// How many senders are remembered: those that have posted in the time that a burst takes to be forgotten, and some
  /// more.
  var senders: Int { state.withLock { $0.evenUntil.count } }

  /// Throws `.tooLarge` for a batch of so many sends that never has places for all at once.
  func requireRoomInBurst(for count: Int) throws(Refusal) {
    guard count > quota.burst else { return }
    throw Refusal(
      .tooLarge,
      "a batch under an Idempotency-Key is accepted as a whole, and this one has \(count) sends where the quota lets one sender post "
        + "\(quota.burst) at once: divide it, with a key for each part")
  }

  /// Takes places for sends of the sender's, as many as there are, at most `count`; or, where `asWhole`, all or none.
  /// Returns how many, and in how many seconds there will be one more, or all.
  func take(_ count: Int, by sender: String, at now: UnixTime, asWhole: Bool = false) -> (taken: Int, retryAfter: Int) {
    let (sender, now) = (Array(sender.utf8), now.milliseconds * 1000)
    let (interval, window) = (
      1_000_000 / Double(quota.perSecond), Double(quota.burst) * 1_000_000 / Double(quota.perSecond)
    )
    return state.withLock { state in
      // Never further ahead than a burst reaches: a clock that was set back must not shut anybody out.
      let ahead = min(max(0, Double((state.evenUntil[sender] ?? 0) - now)), window)
      let room = Int((window - ahead) / interval + 1e-9)
      let taken = asWhole && room < count ? 0 : min(count, room)
      let then = ahead + Double(taken) * interval
      state.evenUntil[sender] = now + Int64(then.rounded(.up))
      sweep(&state, at: now)
      let wanted = asWhole ? Double(count) : 1
      return (taken, max(1, Int(((then + wanted * interval - window) / 1_000_000).rounded(.up))))
    }
  }

  /// Gives back places that were taken for sends that were not accepted, so long after they were taken; but none that
  /// have come back by themselves meanwhile.
  func giveBack(_ count: Int, to sender: String, after elapsed: Duration) {
    // Rounded down, for what was taken was rounded up.
    let time = Int64(Double(count) * 1_000_000 / Double(quota.perSecond) - elapsed / .microseconds(1))
    state.withLock { $0.evenUntil[Array(sender.utf8)]? -= max(0, time) }
  }

  /// Forgets who may post a whole burst again.
  private func sweep(_ state: inout State, at now: Int64) {
    guard state.evenUntil.count > state.sweepSize else { return }
    state.evenUntil = state.evenUntil.filter { $0.value > now }
    state.sweepSize = max(Self.smallestSweep, 2 * state.evenUntil.count)
  }
}

extension Refusal {
  /// The refusal of what is over a sender's quota.
  static func overQuota(retryAfter seconds: Int) -> Refusal {
    var refusal = Refusal(
      .overQuota, "more sends than the quota lets one sender post; there is room again in \(seconds) s")
    refusal.retryAfter = seconds
    return refusal
  }
}
