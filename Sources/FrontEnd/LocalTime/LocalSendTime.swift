import FanfareCore
import Foundation

/// A time of day on a date at which each device gets a send, on the clocks of its own time zone.
struct LocalSendTime: Hashable {
  /// The moment at which clocks that show UTC show the time.
  let inUTC: UnixTime
  /// The zone of devices that have none.
  let defaultZone: String

  /// Parses a date-time without an offset: `2026-12-01T08:00:00`.
  static func parse(_ text: String) -> UnixTime? {
    // With an offset the text would have two.
    text.utf8.last.map { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") } == true ? UnixTime(text + "Z") : nil
  }

  /// The moment at which the clocks of a zone show the time.
  ///
  /// Of a time that occurs twice when clocks are set back, it is the first; of one that is skipped when they are set
  /// forward, that with the offset before the change (RFC 5545 §3.3.5).
  func instant(in zone: String) -> UnixTime {
    // Only names of known zones are accepted.
    guard let zone = TimeZone(identifier: zone) else { return inUTC }
    func offset(at time: UnixTime) -> Duration {
      .seconds(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(time.milliseconds) / 1000)))
    }
    func moment(_ offset: Duration) -> UnixTime { inUTC + (.zero - offset) }
    // No zone changes its clocks twice within two days.
    let before = moment(offset(at: inUTC + .seconds(-86_400)))
    let after = moment(offset(at: inUTC + .seconds(86_400)))
    let valid = [before, after].filter { moment(offset(at: $0)) == $0 }
    return valid.min() ?? before
  }
}

/// The part of a send in local time that goes out at one moment.
struct LocalPart: Hashable {
  let instant: UnixTime
  /// Empty: all devices whose zone is in no other part.
  let zones: [String]

  /// Identifies the part within its request: the same for the same moment, whichever zones are in use.
  var line: Int { Int(instant.milliseconds) * 2 + (zones.isEmpty ? 1 : 0) }

  /// The parts for the zones, the earliest first, and at last the one for the rest.
  static func all(of time: LocalSendTime, zones: [String]) -> [LocalPart] {
    let groups = Dictionary(grouping: Set(zones)) { time.instant(in: $0) }
    return groups.map { LocalPart(instant: $0.key, zones: $0.value.sorted()) }.sorted { $0.instant < $1.instant }
      + [LocalPart(instant: time.instant(in: time.defaultZone), zones: [])]
  }

  /// The devices of the part of an audience. `all` are the zones of all parts.
  func audience(within audience: Audience, all: [String]) -> Audience {
    let tags = (zones.isEmpty ? all : zones).map { TagExpression.tag(Tag.timeZone($0)) }
    guard let first = tags.first else { return audience }
    let inZones = tags.count == 1 ? first : .any(tags)
    let condition = zones.isEmpty ? .not(inZones) : inZones
    switch audience {
    case .user(let name): return .expression(.all([.tag(Tag.username(name)), condition]))
    case .tag(let tag): return .expression(.all([.tag(tag), condition]))
    case .tags(let tags):
      let any = tags.count == 1 ? TagExpression.tag(tags[0]) : .any(tags.map(TagExpression.tag))
      return .expression(.all([any, condition]))
    case .expression(.all(let operands)): return .expression(.all(operands + [condition]))
    case .expression(let expression): return .expression(.all([expression, condition]))
    case .everyone: return .expression(condition)
    // Refused before.
    case .registration, .device: return audience
    }
  }
}

extension Audience {
  /// Whether a send to the audience may be in local time: a single device's is known to its sender.
  var mayBeInLocalTime: Bool {
    switch self {
    case .registration, .device: false
    case .user, .tag, .tags, .expression, .everyone: true
    }
  }
}
