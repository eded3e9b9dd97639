import FanfareCore

/// The platform lanes of all hubs by sender's number, and their shared state: pushes in flight, and
/// which lane picks first.
///
/// Invariant: `pushes` is the sum of the lanes' places.
struct PlatformLanes: Sendable, RandomAccessCollection {
  private var lanes: [PlatformLane]
  /// Places taken in all lanes together.
  private(set) var pushes = 0
  /// Uptime when the last push of a single send was handed over, in any lane: all lanes share the
  /// machine.
  private(set) var lastSingle = -BroadcastWindow.memory
  /// The lane that has first pick this turn.
  private var first = 0
  /// The open request to unregister devices, and when the next one is due.
  private var unregistering = (isOpen: false, due: Int64(0))

  init(_ table: SenderTable, _ configuration: WorkerConfiguration) {
    lanes = []
    extend(to: table, configuration)
  }

  /// Adds the lanes of the hubs that were appended to the table.
  mutating func extend(to table: SenderTable, _ configuration: WorkerConfiguration) {
    for number in lanes.count..<table.senders.count {
      let quota = configuration.quota(of: table.platform(ofSender: number), hub: table.hub(ofSender: number))
      lanes.append(PlatformLane(configuration, quota: quota))
    }
  }

  var startIndex: Int { 0 }
  var endIndex: Int { lanes.count }

  /// A lane, to be read or changed in place.
  /// Events that take or free a place use the methods below.
  subscript(sender: Int) -> PlatformLane {
    @inline(__always) _read { yield lanes[sender] }
    @inline(__always) _modify { yield &lanes[sender] }
  }

  /// Whether a request to unregister devices is open.
  var isUnregistering: Bool { unregistering.isOpen }

  /// Gives another lane first pick, so that none starves when places are few.
  mutating func beginRound() { first = (first + 1) % lanes.count }
  /// The lane whose turn it is in this round.
  func lane(at turn: Int) -> Int { (first + turn) % lanes.count }

  mutating func beginCheck(_ ticket: Ticket, of sender: Int) {
    pushes += 1
    lanes[sender].beginCheck(ticket)
  }

  mutating func endCheck(_ ticket: Ticket, of sender: Int) {
    pushes -= 1
    lanes[sender].endCheck(ticket)
  }

  mutating func submitted(_ ticket: Ticket, to sender: Int, at uptime: Int64) {
    pushes += 1
    if !ticket.isBroadcast { lastSingle = uptime }
    lanes[sender].submitted(ticket, at: uptime)
  }

  mutating func answered(_ ticket: Ticket, by sender: Int, _ outcome: PushOutcome, at uptime: Int64) {
    pushes -= 1
    lanes[sender].answered(ticket, outcome, at: uptime)
  }

  /// Pushes of single sends that unresponsive services have not answered.
  var unresponsivePushes: Int {
    lanes.indices.reduce(0) { lanes[$1].isUnresponsive ? $0 + Swift.max(0, lanes[$1].unansweredSingles) : $0 }
  }

  /// Whether it is time to unregister dead devices, which happens every second.
  mutating func isUnregisteringDue(at uptime: Int64) -> Bool {
    guard uptime >= unregistering.due else { return false }
    unregistering.due = uptime + 1000
    return true
  }

  /// Takes the devices to unregister, unless a request is open.
  /// The registry decides whether a verdict is older than the registration.
  mutating func takeSuspects() -> [Effects.Unregistration] {
    guard !unregistering.isOpen else { return [] }
    var suspects: [Effects.Unregistration] = []
    for sender in lanes.indices where lanes[sender].unregistering.hasSuspects {
      suspects += lanes[sender].takeSuspects().map { Effects.Unregistration(sender: sender, device: $0) }
    }
    unregistering.isOpen = !suspects.isEmpty
    return suspects
  }

  /// Ends the request. If it failed, the devices will be reported dead again with their next push.
  mutating func unregistered() { unregistering.isOpen = false }

  func checkInvariants() -> [String] {
    var violations = lanes.enumerated().flatMap { number, lane in
      lane.checkInvariants().map { "lane \(number): \($0)" }
    }
    let places = lanes.reduce(0) { $0 + $1.places.inFlight }
    if places != pushes { violations.append("\(pushes) pushes counted, \(places) places taken") }
    return violations
  }
}
