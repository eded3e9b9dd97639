import FanfareCore
import Foundation
import Ledger

/// The outcomes of a row's pushes according to the ledger and to the devices.
struct PushAccount: Sendable {
  /// The numbers of devices by outcome.
  var devices: [DeviceResult.Outcome: Int] = [:]
  /// Sends without a device, or cancelled.
  var sendsWithoutPushes = 0
  /// Sends that expired before any push.
  var expiredSends = 0
  /// Pushes that had to expire: the row itself has checked them.
  var expectedExpirations = 0
  /// Pushes that arrived, each once.
  var arrived = 0
  /// Whether some sends have a short time to live.
  var mayExpire = false
  /// Whether the fault may suppress every answer to a push until it is given up as unconfirmed.
  var mayStayUnconfirmed = false

  /// The number of unexplained outcomes, plus the difference between deliveries and arrivals.
  ///
  /// Every message is valid, every user keeps their devices, nothing is cancelled, and no fault lasts as long as a push
  /// is retried.
  var errors: Int {
    var errors = sendsWithoutPushes + count(.rejected) + count(.deviceGone)
    errors += count(.failed)
    if !mayExpire { errors += expiredSends + abs(count(.expired) - expectedExpirations) }
    if !mayStayUnconfirmed { errors += count(.unconfirmed) }
    // An unconfirmed push may have arrived. An expired one cannot have, because these services do not deliver a push
    // that they leave unanswered for long.
    let (delivered, unconfirmed) = (count(.delivered), count(.unconfirmed))
    return errors + max(0, delivered - arrived) + max(0, arrived - delivered - unconfirmed)
  }

  private func count(_ outcome: DeviceResult.Outcome) -> Int { devices[outcome] ?? 0 }
}

extension PushAccount {
  init(_ totals: LedgerTotals) {
    for ends in totals.devices.values { devices.merge(ends, uniquingKeysWith: +) }
    sendsWithoutPushes = totals.noTarget + totals.cancelled
    expiredSends = totals.expired
  }
}

/// A send of the load that arrived on a device.
struct PushArrival: Sendable {
  let platform: Platform
  /// The device's handle.
  let device: String
  /// The send's number in the load.
  let number: Int
  let at: UnixTime

  /// Reads a simulator's list for one device, in order of arrival; see `FaultLoad.body`.
  static func read(_ list: Data, platform: Platform, device: String) -> [PushArrival] {
    String(decoding: list, as: UTF8.self).components(separatedBy: #"{"platform":"#).compactMap { text in
      guard let time = text.range(of: #""time":""#), let number = text.range(of: FaultLoad.mark),
        let at = UnixTime(String(text[time.upperBound...].prefix { $0 != "\"" })),
        let number = Int(text[number.upperBound...].prefix { $0.isNumber })
      else { return nil }
      return PushArrival(platform: platform, device: device, number: number, at: at)
    }
  }
}
