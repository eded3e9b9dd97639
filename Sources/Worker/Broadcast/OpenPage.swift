import FanfareCore

/// A page of a broadcast that is being worked on: a fixed slice of the registrations' id space, looked through in the
/// order of the ids.
struct OpenPage: Sendable {
  /// The segment that it belongs to.
  let segment: Ticket
  let broadcast: BroadcastID
  let number: Int
  /// How many pages the broadcast has.
  let pages: Int
  /// What of the slice has not been looked through; nil when all of it has.
  var slice: RegistrationSlice?
  var isLookingUp = false
  /// What was looked up last, in ascending order. Not changed, so that the page can be copied without it.
  var found: [Target] = []
  /// How many of those are among the item's devices.
  var taken = 0
  /// How many devices have been taken since the page was opened.
  var devices = 0
  /// Uptime since which what was found may be out of date.
  var checkedAt: Int64 = 0
  /// How many devices may be taken before the broadcast's rate is asked for again.
  var permits = 0
  /// Permits that count from a moment on.
  var reserved: (count: Int, from: UnixTime)?
  var isReserving = false
  /// Whether its devices were called back because the broadcast is paused.
  var isParked = false
  /// Whether what is left of it is put off, because it is paused and there is no room for it.
  var isLeaving = false
  /// Whether it ends with what has been taken, because the broadcast was cancelled.
  var isCut = false

  init(segment: Ticket, broadcast: BroadcastID, number: Int, pages: Int) {
    self.segment = segment
    self.broadcast = broadcast
    self.number = number
    self.pages = pages
    slice = RegistrationSlice.page(number, of: pages)
  }

  /// How many devices were found and not taken.
  var waiting: Int { found.count - taken }

  /// Whether no device of it is to come any more.
  var isExhausted: Bool { slice == nil && waiting == 0 && !isLookingUp }

  /// Forgets what was found and not taken: it will be looked up again.
  mutating func forgetFound() {
    guard waiting > 0 else { return }
    let whole = RegistrationSlice.page(number, of: pages)
    slice =
      taken > 0
      ? whole.after(found[taken - 1].registration) : RegistrationSlice(first: found[0].registration, last: whole.last)
    found = []
    taken = 0
  }
}
