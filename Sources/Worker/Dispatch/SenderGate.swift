/// Whether a sender may be given pushes. Closed while it works; open while a mistake of its operator keeps it from working; half-open while a
/// single push tries whether it works again. A pure value.
struct SenderGate: Sendable {
  /// As the metric shows it: 0 closed, 1 half-open, 2 open.
  enum State: Int, Sendable {
    case closed = 0
    case halfOpen = 1
    case open = 2
  }

  private let probeInterval: Int64
  private var probeDue: Int64 = 0
  private var hasProbe = false
  private(set) var state = State.closed
  /// How often the sender turned out to work again.
  private(set) var recoveries = 0

  /// Tries again after so many milliseconds.
  init(probeInterval: Int64) {
    self.probeInterval = probeInterval
  }

  /// How many further pushes may be submitted now: everything, one, or none.
  func allowance(at uptime: Int64) -> Int {
    switch state {
    case .closed: .max
    case .open: uptime >= probeDue ? 1 : 0
    case .halfOpen: hasProbe ? 0 : 1
    }
  }

  /// The one push that was allowed is on its way.
  mutating func beginProbe() {
    state = .halfOpen
    hasProbe = true
  }

  /// The probe was not sent after all, or its answer says nothing about the sender: another may be sent at once.
  mutating func withdrawProbe() {
    guard state == .halfOpen else { return }
    state = .open
    hasProbe = false
  }

  /// The sender cannot work. Returns whether this is news.
  mutating func fail(at uptime: Int64) -> Bool {
    defer { state = .open }
    switch state {
    case .closed, .halfOpen: probeDue = uptime + probeInterval
    // Also what is refused before it is submitted has used up the probe; late answers from before the gate opened have not.
    case .open: if uptime >= probeDue { probeDue = uptime + probeInterval }
    }
    hasProbe = false
    return state == .closed
  }

  /// An attempt ended without an answer that would prove anything: the next probe is due after the interval.
  mutating func remainUnsure(at uptime: Int64) {
    guard state == .halfOpen else { return }
    state = .open
    hasProbe = false
    probeDue = uptime + probeInterval
  }

  /// The service answered a push on its merits, so the sender works. Returns whether this is news.
  mutating func succeed() -> Bool {
    guard state == .halfOpen else { return false }
    state = .closed
    hasProbe = false
    recoveries += 1
    return true
  }
}
