import FanfareCore

/// One record on its way through the worker, or one page of a broadcast.
/// See `WorkerStep` for its phases.
///
/// Its owner is the `ItemTable`, which keeps the counters that belong to `dispatch`, `add`, `settle` and `vacate`.
struct WorkItem: Sendable {
  typealias Phase = ItemPhase

  enum Kind: Sendable {
    /// A record of the sends topic.
    case send
    /// A record of the sends topic whose audience is divided into pages: it writes segments.
    case plan
    /// A record of the segments topic.
    case segment
    /// One page of a segment.
    case page
    /// A deferred record that is a page again.
    case readmitted
  }

  /// Where the item comes from.
  struct Source: Sendable {
    var origin = Origin(slot: 0, epoch: 0, sequence: 0)
    /// Further records of the same send, which settle with it.
    var followers: [Origin] = []
    /// The record's size, which counts against the limit of bytes held.
    var bytes = 0
    /// The send's key in `RecentSends`; nil of a page, or when the record could not be used.
    var key: RecentSends.Key?
    /// The hub's number.
    var hub = 0
  }

  /// The item's place in the lane of its record key: items of a lane start one after another.
  struct Turn: Sendable {
    /// The hash of the key; nil: the item is in no lane.
    var lane: UInt64?
    /// Whether it leads the lane: only the leader is in its first attempts.
    var leads = false
    /// The slot of the item behind it; -1: none.
    var next: Int32 = -1
    /// Whether it was given up. Behind others it is freed at its turn.
    var isAbandoned = false
  }

  struct Progress: Sendable {
    /// Devices without a result.
    var openDevices = 0
    /// Devices whose first attempt has no outcome.
    var openFirstAttempts = 0
    /// Its records that Kafka has not acknowledged.
    var unacknowledged = 0
    /// Whether any push was handed to a sender: from then on giving the item up repeats pushes.
    var hasStarted = false
  }

  /// The part of the send that a deferred record stands for.
  struct Resumed: Sendable {
    let part: Int
    let parts: Int
    let attempt: DispatchID?
    let deferrals: Int
    /// Whether it came back before its time.
    let cameEarly: Bool
    /// The outcomes of further devices of the part.
    let counts: OutcomeCounts
  }

  /// The send's payload for one platform and, of a send that is rendered from templates, one variant; or the outcome of
  /// all its pushes if it cannot be rendered.
  struct Rendering: Sendable {
    let sender: Int
    let variant: TemplateVariant?
    let result: Result<RenderedPush, PushOutcome>
  }

  /// More than a page usually has languages and platforms, and few enough to search for every push.
  private static let maximumRenderings = 24

  /// The number of items that this slot has had.
  private(set) var generation: UInt32 = 0
  private(set) var phase = Phase.vacant {
    didSet { if let observe, phase != oldValue { observe(step(from: oldValue, to: phase)) } }
  }
  private(set) var kind = Kind.send
  /// Whether its pushes wait in the broadcasts' lane.
  private(set) var isBroadcast = false
  private(set) var source = Source()
  /// nil when the record could not be used, and once the item is settling.
  private(set) var send: SendRequest?
  private(set) var expiresAt = UnixTime(milliseconds: 0)
  private(set) var turn = Turn()
  private(set) var devices: [DeviceProgress] = []
  private(set) var progress = Progress()
  /// The last ones that were used, at most `maximumRenderings`.
  private(set) var renderings: [Rendering] = []
  /// Set for a record that was deferred.
  private(set) var resumed: Resumed?
  /// Whether `ActiveTraces` has a span for it.
  private(set) var isTraced = false
  /// When it passed through its stages.
  private(set) var times = SendTimes()

  var origin: Origin { source.origin }
  var hub: Int { source.hub }
  var openDevices: Int { progress.openDevices }
  var hasStarted: Bool { progress.hasStarted }
  /// Whether it is an `OpenPage`.
  var isPage: Bool { kind == .page || kind == .readmitted }
  /// Whether it counts against the limits of broadcasts' segments instead of those of records.
  var isOfBroadcast: Bool { kind == .segment || kind == .page }
  /// Whether the slot holds an item that has not been given up.
  var isLive: Bool { phase != .vacant && !turn.isAbandoned }

  /// Told every change of a phase; nil: none is of interest.
  private var observe: StepObserver?

  init(observe: StepObserver? = nil) { self.observe = observe }

  /// Changes one device in place. Closing it must be counted: see `closeDevice` and `withdraw`.
  subscript(device index: Int) -> DeviceProgress {
    @inline(__always) _read { yield devices[index] }
    @inline(__always) _modify {
      let former = devices[index].phase
      yield &devices[index]
      if let observe, devices[index].phase != former { observe(.device(from: former, to: devices[index].phase)) }
    }
  }

  // The item's own transitions. Each asserts the phases in which it may occur.

  mutating func occupy(_ source: Source, kind: Kind) {
    assert(phase == .vacant)
    self.source = source
    self.kind = kind
    phase = .resolving
  }

  mutating func vacate() {
    assert(phase != .vacant)
    forgetDevices()
    if let observe { observe(step(from: phase, to: turn.isAbandoned ? nil : .vacant)) }
    let next = generation &+ 1
    self = WorkItem(observe: observe)
    generation = next
  }

  private mutating func forgetDevices() {
    if let observe { for device in devices { observe(.device(from: device.phase, to: nil)) } }
    devices = []
  }

  private func step(from former: Phase, to phase: Phase?) -> WorkerStep {
    let item: WorkerStep.Item =
      switch kind {
      case .send, .plan, .readmitted: .record
      case .segment: .segment
      case .page: .page
      }
    return .item(item, from: former, to: phase)
  }

  /// Takes the send over. `times`: those of its earlier stages.
  mutating func hold(_ send: SendRequest, until expiresAt: UnixTime, times: SendTimes) {
    self.send = send
    self.expiresAt = expiresAt
    self.times = times
  }

  /// Notes that the registry has answered which devices it has.
  mutating func lookedUp(at now: UnixTime) {
    if times.lookedUp == nil { times.lookedUp = now }
  }

  /// Notes that the device's service has answered.
  mutating func answered(_ index: Int, at now: Moment) {
    times.answered = now.wall
    self[device: index].answered(at: now.uptime)
  }

  /// Takes over the rate of the item's broadcast; nil: the send's own.
  ///
  /// From then on the item's send has this rate, also in its successors: segments, and records that are deferred.
  mutating func follow(_ rate: BroadcastRate?) {
    guard let rate, let send, send.maximumPerSecond != rate.perSecond else { return }
    self.send = send.with { $0.maximumPerSecond = rate.perSecond }
  }

  mutating func trace() { isTraced = true }

  /// Takes its place in a lane: as the first, or behind others.
  mutating func enter(_ lane: UInt64, asFirst leads: Bool) {
    assert(phase == .resolving && turn.lane == nil)
    turn.lane = lane
    turn.leads = leads
    if !leads { phase = .queued }
  }

  mutating func setNext(_ slot: Int) { turn.next = Int32(slot) }

  /// Starts the item at its turn in the lane.
  mutating func start() {
    assert(phase == .queued)
    phase = .resolving
    if turn.lane != nil { turn.leads = true }
  }

  /// Leaves the first place of its lane. Returns the slot behind it; -1: none.
  mutating func leaveLane() -> Int {
    defer { (turn.leads, turn.next) = (false, -1) }
    return Int(turn.next)
  }

  mutating func abandon() { turn.isAbandoned = true }

  /// Adds another record of the same send, which settles with this one.
  mutating func join(_ origin: Origin) { source.followers.append(origin) }

  /// Continues for a follower whose partition stays. Returns whether there is one.
  mutating func moveToFollower(where stays: (Origin) -> Bool) -> Bool {
    guard let index = source.followers.firstIndex(where: stays) else { return false }
    source.origin = source.followers.remove(at: index)
    return true
  }

  /// Begins to dispatch to the devices.
  /// Their first attempts are open unless the item was deferred before.
  mutating func dispatch(_ devices: [DeviceProgress], isBroadcast: Bool = false) {
    assert(phase == .resolving)
    phase = .dispatching
    if isBroadcast { self.isBroadcast = true }
    add(devices)
  }

  mutating func add(_ found: [DeviceProgress]) {
    assert(phase == .dispatching)
    if devices.isEmpty { devices = found } else { devices += found }
    progress.openDevices += found.count
    for index in found.indices where !found[index].isFirstAttemptOver { progress.openFirstAttempts += 1 }
    if let observe { for device in found { observe(.device(from: nil, to: device.phase)) } }
  }

  /// Resumes a deferred record as a part of its send.
  mutating func resume(_ resumed: Resumed) { self.resumed = resumed }

  /// Makes the item of a deferred record a page.
  mutating func readmit() {
    assert(phase == .resolving && kind == .send)
    kind = .readmitted
  }

  mutating func becomePlan() {
    assert(phase == .settling && kind == .send)
    kind = .plan
  }

  /// Walks the segment: its next pages are in hand.
  mutating func walk() {
    assert(kind == .segment && (phase == .resolving || phase == .walking || phase == .settling))
    phase = .walking
  }

  /// Settles, with records under way.
  /// `keepsSend`: a segment continues with its next pages afterwards.
  mutating func settle(records: Int, keepsSend: Bool = false) {
    assert(phase == .resolving || phase == .walking || phase == .dispatching)
    phase = .settling
    forgetDevices()
    renderings = []
    if !keepsSend { send = nil }
    progress.unacknowledged = records
  }

  /// Notes that Kafka has one of its records. Returns whether it was the last.
  mutating func acknowledge() -> Bool {
    assert(phase == .settling && progress.unacknowledged > 0)
    progress.unacknowledged -= 1
    return progress.unacknowledged == 0
  }

  mutating func keep(_ rendering: Rendering) {
    // Where devices have values of their own, a rendering is of no use to the others.
    if renderings.count == Self.maximumRenderings { renderings.removeFirst() }
    renderings.append(rendering)
  }

  /// Hands a device to its sender. Returns whether it is the item's first.
  mutating func submit(_ index: Int, at now: Moment) -> Bool {
    assert(phase == .dispatching)
    self[device: index].submit(at: now.uptime)
    if times.pushed == nil { times.pushed = now.wall }
    defer { progress.hasStarted = true }
    return !progress.hasStarted
  }

  /// Closes a device that has its result or is deferred. Returns whether it was the last open one.
  mutating func closeDevice() -> Bool {
    assert(phase == .dispatching && progress.openDevices > 0)
    progress.openDevices -= 1
    return progress.openDevices == 0
  }

  /// Withdraws the device: no push is sent to it, and no result reported.
  mutating func withdraw(_ index: Int) {
    assert(phase == .dispatching && progress.openDevices > 0)
    self[device: index].withdraw()
    progress.openDevices -= 1
  }

  /// Ends the device's first attempt: it has its outcome or cannot be made.
  /// Returns whether it was the item's last.
  mutating func passFirstAttempt(_ index: Int) -> Bool {
    guard devices[index].passFirstAttempt() else { return false }
    progress.openFirstAttempts -= 1
    return progress.openFirstAttempts == 0
  }

  /// Whether its devices are looked up or pushed to for the first time.
  var isInFirstAttempts: Bool {
    phase == .resolving || (phase == .dispatching && progress.openFirstAttempts > 0)
  }

  /// The violated invariants of the item itself.
  func checkInvariants() -> [String] {
    guard phase != .vacant else { return devices.isEmpty && send == nil ? [] : ["a vacant slot holds data"] }
    var violations: [String] = []
    if phase != .dispatching, !devices.isEmpty { violations.append("\(phase) with devices") }
    guard phase == .dispatching else { return violations }
    if send == nil { violations.append("dispatching without a send") }
    var (open, firstAttempts) = (0, 0)
    for device in devices {
      if device.isOpen { open += 1 }
      if !device.isFirstAttemptOver { firstAttempts += 1 }
    }
    if open != openDevices { violations.append("\(openDevices) open devices counted, \(open) found") }
    if firstAttempts != progress.openFirstAttempts {
      violations.append("\(progress.openFirstAttempts) open first attempts counted, \(firstAttempts) found")
    }
    return violations
  }
}
