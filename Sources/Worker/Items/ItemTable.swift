import FanfareCore
import RDKafka

/// The worker's items by slot, the lanes of their keys, recent sends, and the memory they take.
///
/// An item is admitted into a free slot and leaves it with `vacate`, which raises the slot's generation, so that
/// earlier tickets find nothing. Items of one record key form a lane: the first one leads it, and the next starts when
/// the leader's first attempts are over.
///
/// Invariants:
/// - `held` equals the sum over the items.
/// - The vacant slots are those on the free list, each once.
/// - Each lane has exactly one leader, and only leaders resolve their devices: at most one item of a key is in its
/// first attempts.
/// - After a grant, credit and held records stay within the limits: see `CreditWindow`.
/// - Each item's counts of open devices, first attempts and unacknowledged records are correct.
struct ItemTable: Sendable, RandomAccessCollection {
  private var slots: [WorkItem] = []
  private var vacant: [Int] = []
  /// The last item of each lane, by the hash of the key.
  /// Keys that collide only wait for one another.
  private var lastInLane: [UInt64: Int32] = [:]
  private var recent: RecentSends
  private(set) var held = HeldMemory()
  /// Consumer credit, granted by the room that is left.
  private(set) var credit = CreditWindow()
  /// Whether the consumer was told to deliver no further segments.
  private(set) var pausesSegments = false

  private let observe: StepObserver?

  init(rememberedSends: Int, observe: StepObserver? = nil) {
    recent = RecentSends(capacity: rememberedSends)
    self.observe = observe
  }

  /// The result of admitting a record.
  enum Admission {
    /// It is a new item in that slot.
    case new(Int)
    /// An item already works on the send: the record settles with it.
    case joined
    /// The send has settled, and the record settles at once.
    case settled
  }

  // Reading.

  var startIndex: Int { 0 }
  var endIndex: Int { slots.count }
  /// Whether no item of any key is in its first attempts.
  var hasNoLanes: Bool { lastInLane.isEmpty }

  /// The item in a slot, to be read or changed in place.
  subscript(slot: Int) -> WorkItem {
    @inline(__always) _read { yield slots[slot] }
    @inline(__always) _modify { yield &slots[slot] }
  }

  /// Whether the ticket's item still occupies its slot.
  func isCurrent(_ ticket: Ticket) -> Bool {
    slots[ticket.slot].generation & 0x7_FFFF == ticket.generation && slots[ticket.slot].phase != .vacant
  }

  /// Whether the ticket's item still occupies its slot and is being resolved.
  func isResolving(_ ticket: Ticket) -> Bool { isCurrent(ticket) && slots[ticket.slot].phase == .resolving }

  /// The ticket's device, if its item is still being dispatched.
  func device(_ ticket: Ticket) -> DeviceProgress? {
    guard isCurrent(ticket), slots[ticket.slot].phase == .dispatching else { return nil }
    return slots[ticket.slot].devices[ticket.device]
  }

  /// The phase of the ticket's device; nil if its item is no longer dispatching.
  /// Unlike `device`, copies nothing.
  func phase(of ticket: Ticket) -> DeviceProgress.Phase? {
    guard isCurrent(ticket), slots[ticket.slot].phase == .dispatching else { return nil }
    return slots[ticket.slot].devices[ticket.device].phase
  }

  /// The ticket of an item, or of one of its devices.
  func ticket(_ slot: Int, device: Int = 0) -> Ticket {
    Ticket(slot: slot, generation: slots[slot].generation, device: device, isBroadcast: slots[slot].isBroadcast)
  }

  // Credit.

  /// Counts records that have arrived.
  /// Those of the segments topic have their own limits and arrive in their own batches.
  mutating func receive(_ batch: [ConsumedRecord], areSegments: Bool) {
    credit.receive(records: batch.count, bytes: areSegments ? nil : batch.reduce(0) { $0 + $1.value.count })
  }

  /// The change of credit to grant. `unresponsive`: pushes of services that do not answer.
  mutating func grantCredit(
    unresponsive: Int, spanAllows: @autoclosure () -> Bool, limits: WorkerConfiguration.Limits
  ) -> Int {
    let exempt = held.exempt(forPushes: unresponsive, limits: limits)
    return credit.grant(
      records: Swift.min(limits.maximumRecords + exempt.records - held.records, 2048),
      bytes: limits.maximumBytes + exempt.bytes - held.bytes, step: Swift.min(512, limits.maximumRecords / 8),
      mayGrow: held.devices < limits.maximumDevices && spanAllows())
  }

  /// Whether the consumer must stop or resume delivering segments; nil: no change.
  mutating func pauseSegments(hasReachedSpan: Bool, limits: WorkerConfiguration.Limits) -> Bool? {
    let hasRoom =
      held.segments < limits.maximumSegments && held.segmentBytes < limits.maximumSegmentBytes && !hasReachedSpan
    guard pausesSegments == hasRoom else { return nil }
    pausesSegments = !hasRoom
    return pausesSegments
  }

  // Coming and going.

  /// Makes an item of a record, unless its send is known.
  mutating func admit(
    _ id: SendID, hub: Int, origin: Origin, bytes: Int, as kind: WorkItem.Kind = .send
  ) -> Admission {
    let key = RecentSends.Key(id: id, hub: Int32(hub))
    let slot = nextSlot
    let next = Ticket(slot: slot, generation: slot < slots.count ? slots[slot].generation : 0)
    if let former = recent.open(key, as: next) {
      guard isCurrent(former) else { return .settled }
      slots[former.slot].join(origin)
      return .joined
    }
    return .new(occupy(WorkItem.Source(origin: origin, bytes: bytes, key: key, hub: hub), as: kind))
  }

  /// Occupies a free slot with an item that is no send: a page, or a record to be dead-lettered.
  mutating func occupy(_ source: WorkItem.Source, as kind: WorkItem.Kind = .send) -> Int {
    let slot = nextSlot
    if vacant.popLast() == nil { slots.append(WorkItem(observe: observe)) }
    slots[slot].occupy(source, kind: kind)
    held.add(slots[slot], times: 1)
    return slot
  }

  /// Remembers the item's send as settled, because its records are durable.
  mutating func conclude(_ slot: Int) {
    if let key = slots[slot].source.key { recent.settle(key) }
    vacate(slot)
  }

  /// Gives the item up unsettled: its send is new when it returns.
  /// An item that waits in its lane keeps its slot until its turn. Returns whether to vacate the slot now.
  mutating func abandon(_ slot: Int) -> Bool {
    if let key = slots[slot].source.key { recent.forget(key) }
    slots[slot].abandon()
    return slots[slot].phase != .queued
  }

  /// Frees the item's slot.
  mutating func vacate(_ slot: Int) {
    held.add(slots[slot], times: -1)
    held.devices -= slots[slot].devices.count
    slots[slot].vacate()
    vacant.append(slot)
  }

  // Lanes.

  /// Puts a send into the lane of its key. Returns whether it is the first there, and may start.
  mutating func enter(_ slot: Int, lane: UInt64) -> Bool {
    let last = lastInLane.updateValue(Int32(slot), forKey: lane)
    slots[slot].enter(lane, asFirst: last == nil)
    if let last { slots[Int(last)].setNext(slot) }
    return last == nil
  }

  /// Ends the item's lead of its lane.
  /// Returns the item that may start now; nil: none. Frees items that were given up while they waited.
  mutating func advanceLane(_ slot: Int) -> Int? {
    guard slots[slot].turn.leads, let lane = slots[slot].turn.lane else { return nil }
    var next = slots[slot].leaveLane()
    while next >= 0 {
      guard slots[next].turn.isAbandoned else {
        slots[next].start()
        return next
      }
      let following = Int(slots[next].turn.next)
      vacate(next)
      next = following
    }
    lastInLane.removeValue(forKey: lane)
    return nil
  }

  // Devices.

  /// Begins to dispatch the item to its devices.
  mutating func dispatch(_ slot: Int, _ devices: [DeviceProgress], isBroadcast: Bool = false) {
    held.devices += devices.count
    slots[slot].dispatch(devices, isBroadcast: isBroadcast)
  }

  /// Adds further devices of a page.
  mutating func add(_ slot: Int, _ devices: [DeviceProgress]) {
    held.devices += devices.count
    slots[slot].add(devices)
  }

  /// The item has its end, and `records` to be acknowledged: frees all data that is not needed
  /// until then.
  mutating func settle(_ slot: Int, records: Int, keepsSend: Bool = false) {
    held.devices -= slots[slot].devices.count
    slots[slot].settle(records: records, keepsSend: keepsSend)
  }

  private var nextSlot: Int { vacant.last ?? slots.count }

  /// Violations of the invariants. Looks at every item.
  func checkInvariants() -> [String] {
    var violations: [String] = []
    var found = HeldMemory()
    var (free, leaders) = (0, 0)
    var trying: Set<UInt64> = []
    for slot in slots.indices {
      if slots[slot].phase == .vacant { free += 1 } else { found.add(slots[slot], times: 1) }
      found.devices += slots[slot].devices.count
      if slots[slot].turn.leads { leaders += 1 }
      if let lane = slots[slot].turn.lane, slots[slot].isInFirstAttempts, !trying.insert(lane).inserted {
        violations.append("slot \(slot) is not the only one of its key in its first attempts")
      }
      violations += checkInvariants(slot)
    }
    if found != held { violations.append("\(held) counted, \(found) found") }
    if free != vacant.count || Set(vacant).count != free || vacant.contains(where: { slots[$0].phase != .vacant }) {
      violations.append("\(free) slots are vacant, and \(vacant) on the free list")
    }
    if leaders != lastInLane.count { violations.append("\(leaders) leaders of \(lastInLane.count) lanes") }
    return violations
  }

  /// Violations of the invariants of one item.
  func checkInvariants(_ slot: Int) -> [String] {
    var violations: [String] = []
    let turn = slots[slot].turn
    if let lane = turn.lane {
      if slots[slot].isInFirstAttempts, !turn.leads {
        violations.append("slot \(slot) is in its first attempts before its turn")
      }
      if turn.leads || slots[slot].phase == .queued, lastInLane[lane] == nil {
        violations.append("slot \(slot) is in a lane that does not exist")
      }
    }
    if turn.leads, slots[slot].phase == .queued || slots[slot].phase == .settling {
      violations.append("slot \(slot) leads its lane while \(slots[slot].phase)")
    }
    return violations + slots[slot].checkInvariants().map { "slot \(slot): \($0)" }
  }

  /// Violations of the limits of credit, after a grant.
  /// Records that were under way when credit was taken back may exceed the limit, but then no credit is left.
  func checkCredit(unresponsive: Int, limits: WorkerConfiguration.Limits) -> [String] {
    guard credit.outstanding > 0 else { return [] }
    let exempt = held.exempt(forPushes: unresponsive, limits: limits)
    let (records, bytes) = (
      limits.maximumRecords + exempt.records - held.records, limits.maximumBytes + exempt.bytes - held.bytes
    )
    let fitting = bytes > 0 ? Swift.max(1, credit.typicalSize.records(in: bytes)) : 0
    let fits = credit.outstanding <= Swift.min(records, fitting)
    return fits ? [] : ["credit for \(credit.outstanding) exceeds the room of \(records) records and \(bytes) bytes"]
  }
}
