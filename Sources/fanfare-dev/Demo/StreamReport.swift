import FanfareCore
import FoundationEssentials
import Ledger

/// What came of a stream of sends: the ledger's account, and what the devices received.
struct StreamReport: Sendable {
  /// Sends that the HTTP API answered with success.
  var posted = 0
  /// Sends on the sends topic.
  var accepted = 0
  /// Sends with an end.
  var settled = 0
  /// Sends that had nobody to go to.
  var noTarget = 0
  /// Devices whose push service took the push.
  var delivered = 0
  /// Devices whose push service, or the check before it, refused the push for good, dead devices included.
  var rejected = 0
  /// Devices with any other end: expired, failed, unconfirmed.
  var failed = 0
  /// Notifications that arrived on devices.
  var arrived = 0
  /// Notifications that arrived on a device that had them already.
  var duplicates = 0
  var seconds = 0.0

  init() {}

  /// What happened between two moments.
  init(from before: LedgerTotals, to after: LedgerTotals) {
    func devices(_ outcomes: DeviceResult.Outcome...) -> Int {
      func count(_ totals: LedgerTotals) -> Int {
        var count = 0
        for ends in totals.devices.values { for outcome in outcomes { count += ends[outcome] ?? 0 } }
        return count
      }
      return count(after) - count(before)
    }
    accepted = after.accepted - before.accepted
    settled = after.settled - before.settled
    noTarget = after.noTarget - before.noTarget
    delivered = devices(.delivered)
    rejected = devices(.rejected, .deviceGone)
    failed = devices(.expired, .failed, .unconfirmed)
  }

  /// Sends answered with success that are not on the topic, sends without an end, and deliveries on record that no
  /// device saw.
  var lost: Int { max(0, posted - accepted) + max(0, accepted - settled) + max(0, delivered - (arrived - duplicates)) }

  /// Whether so many sends were posted, the account is closed and nothing is missing.
  func isComplete(of sends: Int) -> Bool { posted == sends && accepted == settled && lost == 0 }

  /// The report on one line.
  var json: String {
    """
    {"accepted":\(accepted),"settled":\(settled),"delivered":\(delivered),"rejected":\(rejected),"noTarget":\(noTarget),\
    "failed":\(failed),"duplicates":\(duplicates),"lost":\(lost),"seconds":\((seconds * 100).rounded() / 100)}
    """
  }
}
