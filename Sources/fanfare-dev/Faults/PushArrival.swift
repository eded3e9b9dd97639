import FanfareCore
import Foundation

/// A send of the load that has reached a device.
struct PushArrival: Sendable {
  let platform: Platform
  /// The device's handle.
  let device: String
  /// Which send of the load it is.
  let number: Int
  let at: UnixTime

  /// Those that a simulator lists for one device, in the order of their arrival; see `FaultLoad.body`.
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
