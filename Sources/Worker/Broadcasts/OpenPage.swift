import FanfareCore

/// A page of a broadcast in work: a fixed slice of the registration ids, walked in the order of the ids, or the devices
/// of a deferred record that has come back.
///
/// *Running* ⇄ *paused*: its devices are taken out of their queues. *Paused* → *leaving*: room is short, or it is a
/// deferred record, and its devices are deferred. Both become *running* again after the pause. Any → *cut*: its
/// broadcast was cancelled, and it ends with the devices that have been pushed to.
struct OpenPage: Sendable {
  enum State: Sendable {
    case running
    case paused
    case leaving
    case cut
  }

  /// Pushes that the broadcast's rate allows.
  struct Permits: Sendable {
    /// How many devices may be taken before the next request for permits.
    fileprivate(set) var count = 0
    /// Permits that are valid from a moment on.
    fileprivate(set) var reserved: (count: Int, from: UnixTime)?
    fileprivate(set) var isAsking = false
  }

  /// The segment it belongs to; nil: it is a deferred record that has come back.
  let segment: Ticket?
  let broadcast: BroadcastID
  let number: Int
  /// How many pages the broadcast has.
  let pages: Int
  private(set) var state = State.running
  /// The part of the slice that is still to be looked up; nil if none.
  private(set) var slice: RegistrationSlice?
  private(set) var isLookingUp = false
  /// The devices of the last look-up, in ascending order, or of the record.
  private(set) var found: [DeviceProgress] = []
  /// How many of them have been taken.
  private(set) var taken = 0
  /// How many devices have been taken since the page was opened.
  private(set) var devices = 0
  /// Uptime since which `found` may be out of date.
  private(set) var checkedAt: Int64 = 0
  private(set) var permits = Permits()

  init(segment: Ticket, broadcast: BroadcastID, number: Int, pages: Int) {
    self.segment = segment
    self.broadcast = broadcast
    self.number = number
    self.pages = pages
    slice = RegistrationSlice.page(number, of: pages)
  }

  /// A deferred record that has come back, with these devices.
  init(returned retry: RetryRecord, devices: [DeviceProgress]) {
    (segment, broadcast, number, pages) = (nil, retry.broadcast, retry.part, retry.parts)
    // Its devices are looked up one by one, before each push.
    (found, checkedAt) = (devices, .max)
  }

  var isReturned: Bool { segment == nil }

  /// Whether its devices are in no queue because the broadcast is paused.
  var isPaused: Bool { state == .paused || state == .leaving }
  /// How many devices were found and not taken.
  var waiting: Int { found.count - taken }
  /// Whether it will have no further devices.
  var isExhausted: Bool { slice == nil && waiting == 0 && !isLookingUp }

  mutating func run() { state = .running }
  mutating func leave() { state = .leaving }

  mutating func pause() {
    state = .paused
    forgetFound()
  }

  /// Cuts the page. Returns the devices that it does not take any more: of a deferred record they are part of the
  /// account.
  mutating func cut() -> ArraySlice<DeviceProgress> {
    state = .cut
    slice = nil
    defer { (found, taken) = ([], 0) }
    return isReturned ? found[taken...] : []
  }

  /// Begins the next look-up; nil if nothing is left, devices wait, or a look-up is open.
  mutating func beginLookUp() -> RegistrationSlice? {
    guard let slice, !isLookingUp, waiting == 0 else { return nil }
    isLookingUp = true
    return slice
  }

  /// Ends the look-up of a slice. A page that was paused or cut meanwhile ignores the devices.
  mutating func endLookUp(
    _ devices: [DeviceProgress], upTo last: RegistrationID?, in slice: RegistrationSlice, checkedAt: Int64
  ) {
    isLookingUp = false
    guard state == .running || state == .leaving else { return }
    (found, taken) = (devices, 0)
    self.checkedAt = checkedAt
    self.slice = last.flatMap { slice.after($0) }
  }

  /// Takes the next devices that were found.
  mutating func take(_ count: Int) -> ArraySlice<DeviceProgress> {
    defer {
      taken += count
      devices += count
      permits.count -= min(permits.count, count)
    }
    return found[taken..<taken + count]
  }

  /// Forgets the devices that were found and not taken: they will be looked up again.
  mutating func forgetFound() {
    guard waiting > 0, !isReturned else { return }
    let whole = RegistrationSlice.page(number, of: pages)
    slice =
      taken > 0
      ? whole.after(found[taken - 1].target.registration)
      : RegistrationSlice(first: found[0].target.registration, last: whole.last)
    (found, taken) = ([], 0)
  }

  /// Uses permits that have become valid.
  /// Returns how many to ask for, at most a quarter of a second's; nil: none.
  mutating func requestPermits(rate: Int, at now: Moment) -> Int? {
    if let reserved = permits.reserved {
      if reserved.from <= now.wall { permits.count += reserved.count }
      // Permits far ahead were reserved before the clock was set back.
      if reserved.from <= now.wall || reserved.from > now.wall + PushQuota.horizon { permits.reserved = nil }
    }
    guard permits.count == 0, permits.reserved == nil, !permits.isAsking, waiting > 0 else { return nil }
    permits.isAsking = true
    return min(waiting, max(1, rate / 4))
  }

  /// Keeps `count` permits that are valid from `moment` on.
  mutating func reserve(_ count: Int, from moment: UnixTime) {
    permits.isAsking = false
    permits.reserved = (count, moment)
  }

  /// The moment until which it can take no device because its broadcast's rate allows no pushes; nil: none is known.
  var permittedFrom: UnixTime? { permits.count == 0 ? permits.reserved?.from : nil }

  /// Whether it can take no device until its broadcast's rate allows more pushes.
  func waitsForRate(at now: Moment) -> Bool {
    permits.count == 0 && (permits.isAsking || permits.reserved.map { $0.from > now.wall } == true)
  }
}
