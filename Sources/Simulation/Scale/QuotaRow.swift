import FanfareCore
import Registry
import Worker

/// The row in which all workers reserve their shares of a quota: one transaction after another.
struct QuotaRow {
  private struct Answer {
    let at: World.Time
    let worker: Int
    let pushes: Int
    let from: UnixTime
  }

  let quota: PushQuota
  private let transaction: World.Time
  /// Until when its transactions will last that have been asked for.
  private var busyUntil: World.Time = 0
  private var reservedUntil: Int64 = 0
  private var answers: [Answer] = []
  private var next = 0
  private(set) var reservations = 0
  /// The time for which the row was locked.
  private(set) var locked: World.Time = 0

  init(_ quota: PushQuota, transaction: Double) {
    self.quota = quota
    self.transaction = World.Time(clamping: transaction)
  }

  /// A worker asks for a reservation.
  mutating func ask(_ worker: Int, _ pushes: Int, lead: Duration, in world: World) {
    busyUntil = max(busyUntil, world.now) + transaction
    let (start, end) = quota.reservation(of: pushes, behind: reservedUntil, at: world.wall + lead)
    reservedUntil = end
    reservations += 1
    locked += transaction
    answers.append(
      Answer(at: busyUntil, worker: worker, pushes: pushes, from: UnixTime(microsecondsRoundedUp: start)))
  }

  /// Takes out the answers that have arrived.
  mutating func arrived(at now: World.Time) -> [(worker: Int, pushes: Int, from: UnixTime)] {
    var arrived: [(Int, Int, UnixTime)] = []
    while next < answers.count, answers[next].at <= now {
      arrived.append((answers[next].worker, answers[next].pushes, answers[next].from))
      next += 1
    }
    if next > 10_000 {
      answers.removeFirst(next)
      next = 0
    }
    return arrived
  }
}
