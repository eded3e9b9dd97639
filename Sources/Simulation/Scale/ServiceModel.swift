import FanfareCore
import Glibc
import PushServices

/// A push service as the flows see it: how long it takes, and how many pushes a worker may have in flight.
struct ServiceModel {
  let platform: Platform
  /// The share of all pushes that are for it.
  let share: Double
  /// The most pushes in flight of one worker: the streams of its connections.
  let streams: Int
  let connections: Int
  /// The times of answers in microseconds: equally likely, and shuffled so that few pushes are a fair sample.
  private let times: [World.Time]
  private var next = 0
  /// Until when it answers nothing but errors.
  var downUntil: World.Time = 0
  /// The row of its quota; nil: there is no quota.
  var row: QuotaRow?
  private(set) var latency = LatencyHistogram()
  /// Pushes that it has taken.
  private(set) var delivered = 0

  /// `transaction`: how long each reservation of the quota locks its row.
  init(_ service: ScaleProfile.Service, transaction: Double) {
    (platform, share, connections) = (service.platform, service.share, service.limits.connections)
    streams = service.limits.connections * service.limits.streams
    row = service.perMinute.map {
      QuotaRow(PushQuota(hub: .default, platform: service.platform, perMinute: $0), transaction: transaction)
    }
    let count = 1 << 11
    let quantile = Self.quantile(of: service.times)
    // An odd stride visits each place once.
    times = (0..<count).map { quantile((Double($0 * 1267 % count) + 0.5) / Double(count)) }
  }

  private static func quantile(of times: ScaleProfile.Service.Times) -> (Double) -> World.Time {
    switch times {
    case .logNormal(let median, let p99):
      let deviation = log(p99 / median) / 2.326
      return { share in World.Time(clamping: median * 1000 * exp(deviation * normal(share))) }
    case .uniform(let least, let most):
      return { share in World.Time(clamping: (least + (most - least) * share) * 1000) }
    }
  }

  /// The quantile of the standard normal distribution, by bisection: this is done once.
  private static func normal(_ share: Double) -> Double {
    var (low, high) = (-8.0, 8.0)
    for _ in 0..<60 {
      let middle = (low + high) / 2
      if erfc(-middle / 2.0.squareRoot()) / 2 < share { low = middle } else { high = middle }
    }
    return (low + high) / 2
  }

  func isDown(at now: World.Time) -> Bool { now < downUntil }

  /// The time that few answers exceed.
  var tail: World.Time { times.sorted()[times.count - times.count / 500] }

  /// The time that the next push takes.
  @inline(__always)
  mutating func answerTime() -> World.Time {
    next = (next + 1) & (times.count - 1)
    return times[next]
  }

  /// Counts a push that has arrived, this long after its send was accepted.
  @inline(__always)
  mutating func deliver(after time: World.Time) {
    delivered += 1
    latency.add(time)
  }
}
