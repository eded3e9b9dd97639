import DequeModule
import FanfareCore

/// The broadcasts in work: surveys of their audiences, this worker's segments and open pages, and
/// the control state of each broadcast.
///
/// A broadcast is *surveyed*, and a small audience is dispatched like other sends. A larger one is *planned*: divided
/// into segments, which any worker takes. A segment is *walked* page by page. Segments of paused broadcasts are kept
/// apart, so that not every turn looks at them. A page is *open* until the store knows that it is finished. The worker
/// repeats each question to the store until it is answered, after a growing delay. A deferred record of a page that has
/// come back is *returned* until its turn; then it is an open page whose devices are known.
///
/// Invariants: `walks` holds exactly the walks of the segments' items, `pages` exactly the pages of the items of pages
/// and of returned records whose turn has come; at most `mostSurveys` surveys are open.
struct BroadcastWalker: Sendable {
  /// How many audiences are surveyed at a time.
  static let mostSurveys = 4
  /// The most pages that may wait for their rate or a quota at a time without taking another page's
  /// turn.
  static let mostSlowPages = 8

  private var toSurvey: Deque<Ticket> = []
  private(set) var openSurveys = 0
  /// Broadcasts whose segments are being written, by the slot of their item.
  private var plans: [Int: BroadcastID] = [:]
  /// By the slot of their item.
  private var walks: [Int: SegmentWalk] = [:]
  /// Segments in the order in which each gets its next page.
  private(set) var segments: Deque<Ticket> = []
  /// Segments whose broadcast was paused at the last look.
  private(set) var pausedSegments: Deque<Ticket> = []
  /// Deferred records of broadcasts that wait for their turn.
  var returned = ReturnedRecords()
  /// Whether records have returned, or controls were answered, since the last look at the returned ones.
  private var hasNews = false
  /// Whether the next page to open is a returned one, if there are both kinds.
  private var isReturnedTurn = false
  /// By the slot of their item.
  private var pages: [Int: OpenPage] = [:]
  /// Open pages in their order: the first is being pushed, the next is looked up meanwhile and gets
  /// a head start.
  private(set) var openPages: Deque<Ticket> = []
  /// The control state of each broadcast that has a segment, page or record here, as of the store's last answer.
  private(set) var controls: [BroadcastID: BroadcastControl.State] = [:]
  /// The rate of each of them whose rate the store knows.
  private(set) var rates: [BroadcastID: BroadcastRate] = [:]
  private var request = ControlRequest()
  private var backlog = StoreBacklog()

  /// The request for the broadcasts' controls.
  private struct ControlRequest: Sendable {
    var isOpen = false
    var due: Int64 = 0
    /// Whether segments or deferred records have arrived since the last request.
    var hasNewSegments = false
  }

  /// Questions that could not be put to the store.
  private struct StoreBacklog: Sendable {
    var questions = DeadlineQueue<BroadcastQuestion>()
    /// How often in a row the store could not be asked.
    var failures = 0
  }

  /// This worker's share of each broadcast, in no particular order.
  var held: [BroadcastShare] {
    var held: [BroadcastID: BroadcastShare] = [:]
    for walk in walks.values { held[walk.broadcast, default: BroadcastShare(of: walk.broadcast)].add(walk) }
    return Array(held.values)
  }

  /// The segments and open pages, which follow the rate of their broadcast; empty if no rate is known.
  var followers: [Ticket] { rates.isEmpty ? [] : Array(segments) + Array(pausedSegments) + Array(openPages) }

  var isIdle: Bool { segments.isEmpty && pausedSegments.isEmpty && openPages.isEmpty && returned.isEmpty }

  // Questions to the store.

  /// How often in a row the store could not be asked.
  var failures: Int { backlog.failures }

  mutating func failed(_ question: BroadcastQuestion, at uptime: Int64) {
    backlog.questions.insert(question, due: uptime + min(5000, 100 << Int64(min(backlog.failures, 6))))
    backlog.failures += 1
  }

  mutating func answered() { backlog.failures = 0 }

  /// Takes out a question that is due again.
  mutating func popDueQuestion(at uptime: Int64) -> BroadcastQuestion? { backlog.questions.popDue(at: uptime) }

  // Surveys and plans.

  mutating func appendSurvey(_ ticket: Ticket) { toSurvey.append(ticket) }

  /// Takes out the next item to survey; nil if none waits or enough surveys are open.
  mutating func popSurvey() -> Ticket? { openSurveys < Self.mostSurveys ? toSurvey.popFirst() : nil }
  mutating func beginSurvey() { openSurveys += 1 }
  mutating func endSurvey() { openSurveys -= 1 }

  mutating func plan(_ broadcast: BroadcastID, in slot: Int) { plans[slot] = broadcast }
  func plan(_ slot: Int) -> BroadcastID? { plans[slot] }

  // Segments.

  /// Adds a segment that has arrived.
  mutating func begin(_ walk: SegmentWalk, _ ticket: Ticket) {
    walks[ticket.slot] = walk
    segments.append(ticket)
    request.hasNewSegments = true
  }

  /// The walk of a segment; nil for any other item. Can be changed in place.
  subscript(walk slot: Int) -> SegmentWalk? {
    get { walks[slot] }
    _modify { yield &walks[slot] }
  }

  /// Takes out the first segment.
  mutating func popSegment() -> Ticket? { segments.popFirst() }
  /// Puts a segment behind the others.
  mutating func appendSegment(_ ticket: Ticket) { segments.append(ticket) }

  /// Keeps the last segment apart, because its broadcast is paused.
  mutating func setLastSegmentApart() {
    if let ticket = segments.popLast() { pausedSegments.append(ticket) }
  }

  /// How many pages of segments are ending without being pushed.
  func endingPages(items: ItemTable) -> Int {
    segments.reduce(0) { sum, ticket in
      guard items.isCurrent(ticket), let walk = walks[ticket.slot], walk.phase == .ending else { return sum }
      return sum + walk.rest.count
    }
  }

  // Deferred records.

  /// Adds a deferred record that has come back.
  mutating func begin(_ record: ReturnedRecords.Waiting) {
    returned.append(record)
    (hasNews, request.hasNewSegments) = (true, true)
  }

  /// Whether returned records have come, or controls changed, since the last call.
  mutating func takeNews() -> Bool {
    defer { hasNews = false }
    return hasNews
  }

  /// Whether the next page is to be a returned one; alternates.
  mutating func takeReturnedTurn() -> Bool {
    isReturnedTurn.toggle()
    return isReturnedTurn
  }

  // Pages.

  mutating func open(_ page: OpenPage, _ ticket: Ticket) {
    pages[ticket.slot] = page
    openPages.append(ticket)
  }

  /// An open page; nil for any other item. Can be changed in place.
  subscript(page slot: Int) -> OpenPage? {
    get { pages[slot] }
    _modify { yield &pages[slot] }
  }

  /// Whether the item is a page whose devices are in no queue because its broadcast is paused.
  func isPaused(_ slot: Int) -> Bool { pages[slot]?.isPaused == true }

  /// Removes pages that were given up from the order.
  mutating func forgetClosedPages(items: ItemTable) {
    openPages.removeAll { !items.isCurrent($0) }
  }

  /// Closes a page that the store has noted as finished.
  mutating func close(_ ticket: Ticket) { openPages.removeAll { $0 == ticket } }

  /// Forgets the plan, walk or page of an item that is vacated.
  mutating func release(_ slot: Int) {
    plans[slot] = nil
    walks[slot] = nil
    pages[slot] = nil
  }

  // Control states.

  /// The broadcast to which the segment or page belongs; nil for any other item.
  func broadcast(of slot: Int) -> BroadcastID? { walks[slot]?.broadcast ?? pages[slot]?.broadcast }

  /// The broadcasts whose control state to ask for now; nil if none.
  mutating func requestControls(items: ItemTable, interval: Duration, at uptime: Int64) -> [BroadcastID]? {
    guard !request.isOpen, request.hasNewSegments || uptime >= request.due else { return nil }
    request.hasNewSegments = false
    var broadcasts = Set(returned.broadcasts)
    for tickets in [segments, pausedSegments, openPages] {
      for ticket in tickets where items.isCurrent(ticket) {
        if let broadcast = broadcast(of: ticket.slot) { broadcasts.insert(broadcast) }
      }
    }
    guard !broadcasts.isEmpty else {
      // This worker has none of these segments any more: the next look would find the same.
      segments.removeAll()
      pausedSegments.removeAll()
      forgetControls()
      return nil
    }
    request.isOpen = true
    request.due = uptime + interval.milliseconds
    return Array(broadcasts)
  }

  /// Forgets the controls: they are out of date when a broadcast comes again.
  mutating func forgetControls() {
    guard !controls.isEmpty else { return }
    (controls, rates) = ([:], [:])
  }

  /// The controls of these broadcasts are known: the segments of those that are not paused any more
  /// get their turn.
  mutating func noteControl(
    _ broadcasts: [BroadcastID], _ answers: [BroadcastControl], items: ItemTable, at now: Moment
  ) {
    request.isOpen = false
    hasNews = true
    controls = Dictionary(zip(broadcasts, answers.map(\.state))) { _, last in last }
    rates = [:]
    for (broadcast, answer) in zip(broadcasts, answers) { rates[broadcast] = answer.rate }
    let all = pausedSegments
    pausedSegments.removeAll()
    for ticket in all where items.isCurrent(ticket) {
      let isPaused =
        broadcast(of: ticket.slot).map { controls[$0] == .paused } == true
        && now.wall < items[ticket.slot].expiresAt
      if isPaused { pausedSegments.append(ticket) } else { segments.append(ticket) }
    }
  }

  /// Handles a new control state of one broadcast.
  mutating func noteControl(_ broadcast: BroadcastID, _ answer: BroadcastControl?) {
    if controls[broadcast] != nil { controls[broadcast] = answer?.state }
  }

  func checkInvariants(items: ItemTable) -> [String] {
    var violations = returned.checkInvariants()
    for slot in items.indices {
      let kind: WorkItem.Kind? = items[slot].phase == .vacant ? nil : items[slot].kind
      if (walks[slot] != nil) != (kind == .segment) { violations.append("slot \(slot) should be a segment, or not") }
      if (pages[slot] != nil) != (kind == .page || kind == .readmitted) {
        violations.append("slot \(slot) should be a page, or not")
      }
      if (plans[slot] != nil) != (kind == .plan) { violations.append("slot \(slot) should be a plan, or not") }
    }
    if !(0...Self.mostSurveys).contains(openSurveys) { violations.append("\(openSurveys) surveys are open") }
    return violations
  }
}
