import FanfareCore
import Ledger

/// How the pushes of a row have ended, by the ledger's account and at the devices.
struct PushAccount: Sendable {
  /// How sends have ended for devices, and for how many.
  var devices: [DeviceResult.Outcome: Int] = [:]
  /// Sends that had nobody to go to, or were cancelled.
  var sendsWithoutPushes = 0
  /// Sends whose life was over before anything was pushed.
  var expiredSends = 0
  /// Pushes that the devices have, each once.
  var arrived = 0
  /// Whether some sends live only briefly.
  var mayExpire = false
  /// Whether the fault may keep every answer to a push from coming, until it is given up with nobody knowing whether
  /// the device has it.
  var mayStayUnconfirmed = false

  /// How many of them have an end that nothing here excuses, and how far what is delivered and what has arrived are
  /// apart.
  ///
  /// Every message is good, every user has devices, which stay the user's, nobody cancels anything, and no fault lasts
  /// for as long as a push is tried.
  var errors: Int {
    var errors = sendsWithoutPushes + count(.rejected) + count(.deviceGone) + count(.failed)
    if !mayExpire { errors += expiredSends + count(.expired) }
    if !mayStayUnconfirmed { errors += count(.unconfirmed) }
    // Of what is unconfirmed any may have arrived. Of what has expired none: what the services here leave unanswered
    // for long they have not taken.
    let (delivered, unconfirmed) = (count(.delivered), count(.unconfirmed))
    return errors + max(0, delivered - arrived) + max(0, arrived - delivered - unconfirmed)
  }

  private func count(_ outcome: DeviceResult.Outcome) -> Int { devices[outcome] ?? 0 }
}

extension PushAccount {
  /// By the ledger's totals.
  init(_ totals: LedgerTotals) {
    for ends in totals.devices.values { devices.merge(ends, uniquingKeysWith: +) }
    sendsWithoutPushes = totals.noTarget + totals.cancelled
    expiredSends = totals.expired
  }
}
