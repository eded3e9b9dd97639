import FanfareCore
import RDKafka

/// A system with a capacity that many share: the cluster of brokers, or a database.
///
/// `allowance` bounds the work of callers that ask it; others may exceed the capacity of a step, and the excess is
/// taken from later steps. The delay of a request grows with the utilization, as in a queue with one server (M/M/1).
struct Station {
  let name: String
  /// How many of its machines there are, and the processor time of each in a second, in microseconds.
  let machines: Int
  private(set) var capacity: Double
  /// The capacity of all its machines.
  private let whole: Double
  /// The delay of a request without load, in microseconds.
  let delay: Double
  /// Until when it does nothing.
  var downUntil: World.Time = 0
  /// The work that it can still do in this step, in microseconds of processor time; negative after a burst.
  private var room = 0.0
  private var used = 0.0
  private(set) var utilization = 0.0
  private(set) var peak = 0.0
  private var total = 0.0
  /// The work that it could have done.
  private var available = 0.0
  private var seconds = 0.0

  init(_ name: String, machines: Int, cores: Int, delay: World.Time) {
    (self.name, self.machines, self.delay) = (name, machines, Double(delay))
    whole = Double(machines * cores) * 1_000_000
    capacity = whole
  }

  /// Begins a step of so many seconds.
  mutating func begin(_ step: Double, at now: World.Time) {
    let limit = now < downUntil ? 0 : capacity * step
    room = min(limit, room + limit)
    // Smoothed over about a second.
    utilization += (used / (capacity * step) - utilization) * min(1, step * 2)
    total += used
    available += capacity * step
    seconds += step
    if seconds > 1 { peak = max(peak, utilization) }
    used = 0
  }

  /// A share of its machines is lost.
  mutating func lose(_ share: Double) { capacity *= 1 - share }

  /// How much work of this cost can begin in this step.
  @inline(__always)
  func allowance(cost: Double) -> Int { room <= 0 ? 0 : Int(clamping: room / cost) + 1 }

  @inline(__always)
  mutating func work(_ cost: Double) {
    room -= cost
    used += cost
  }

  /// How long a request takes now, in microseconds.
  var latency: World.Time { World.Time(clamping: delay / (1 - min(utilization, 0.98))) }
  var meanUtilization: Double { available == 0 ? 0 : total / available }
  /// How many machines were busy in the mean.
  var meanMachines: Double { seconds == 0 ? 0 : total / (whole * seconds) * Double(machines) }
}

/// The records of the product, in bytes, as its codec writes them.
struct RecordSizes {
  let send: Double
  let status: Double
  /// A deferred send.
  let retry: Double

  init() {
    let id = SendID(high: 0x0199_0000_0000_7000, low: 0x8000_0000_0000_0001)
    let send = SendRequest(
      id: id, acceptedAt: World.epoch, audience: .user("user-0123456789"),
      content: Content(message: Message(title: "A title", body: String(repeating: "text ", count: 20))),
      timeToLive: 3600)
    let status = StatusRecord(
      send: id, hub: send.hub, state: .settled, sender: nil, audience: send.audience, acceptedAt: send.acceptedAt,
      settledAt: World.epoch, devices: [])
    self.send = Double(send.encoded().count)
    self.status = Double(status.encoded().count)
    // It holds the send and its devices.
    retry = self.send + self.status
  }

  /// The batches that a producer makes of `records` in a second when they are spread over so many partitions: a batch
  /// holds its first record and those that come while it waits.
  static func batches(of records: Double, over partitions: Int, linger: Duration) -> Double {
    records / (1 + records / Double(partitions) * linger.seconds)
  }
}

extension Duration {
  var seconds: Double { self / .seconds(1) }
}
