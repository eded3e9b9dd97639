import DequeModule
import FanfareCore
import Glibc
import HeapModule

/// A discrete-event world: a virtual clock, one seeded generator, and one queue of events.
///
/// Nothing in it waits for real time, and nothing happens at the same time as something else: jobs of tasks run in the
/// order in which they became ready, and when none is ready the clock jumps to the next event. The same seed gives the
/// same history.
///
/// `@unchecked Sendable`: everything in a world happens on the thread that has made it. A job of a task that becomes
/// ready on another thread ends the program, because the history would depend on it.
final class World: @unchecked Sendable {
  /// Microseconds since the world began.
  package typealias Time = Int64

  /// When the world begins on the wall clock: 2026-11-21T08:00:00Z.
  static let epoch = UnixTime(milliseconds: 1_795_248_000_000)

  private struct Event: Comparable {
    let time: Time
    let number: UInt64
    let action: () -> Void

    static func == (left: Event, right: Event) -> Bool { left.number == right.number }
    static func < (left: Event, right: Event) -> Bool { (left.time, left.number) < (right.time, right.number) }
  }

  /// Microseconds since the world began.
  private(set) var now: Time = 0
  /// Decides on everything that is left to chance.
  var chance: SplitMix64
  let trace: Trace
  /// Its beginning as a reading of the clock of intervals; only differences to it matter.
  let beginning = ContinuousClock.now
  private let thread = pthread_self()
  private var events = Heap<Event>()
  /// The ends of troubles, by part and aspect.
  private var troubles: [[String]: Time] = [:]
  private var scheduled: UInt64 = 0
  private var ready = Deque<Job>()
  /// How many events and jobs have happened.
  private(set) var steps: UInt64 = 0

  init(seed: UInt64, trace: Trace) {
    chance = SplitMix64(seed: seed)
    self.trace = trace
  }

  /// The true wall-clock time.
  var wall: UnixTime { Self.epoch + .microseconds(now) }

  /// Adds an event to the history.
  func note(_ event: Trace.Event) { trace.note(now, event) }

  /// Adds that an aspect of a part of the world is in trouble for a while, and its end. Of several at the same time the
  /// last end counts.
  func note(_ part: String, _ aspect: String, _ trouble: String, for time: Time, then state: String) {
    let end = max(troubles[[part, aspect]] ?? 0, now + time)
    troubles[[part, aspect]] = end
    note(.trouble(part, aspect, "\(trouble) for \(time / 1000) ms"))
    after(time) { [self] in if troubles[[part, aspect]] == now { note(.well(part, aspect, state)) } }
  }

  /// Lets something happen after a delay in microseconds.
  func after(_ delay: Time, _ action: @escaping () -> Void) {
    scheduled += 1
    events.insert(Event(time: now + max(0, delay), number: scheduled, action: action))
  }

  /// Queues a job of a task that can go on.
  func enqueue(_ job: Job) {
    precondition(pthread_equal(pthread_self(), thread) != 0, "a task of a simulated process has left its world")
    ready.append(job)
  }

  /// Lets time pass until `end`, or until `isOver` holds after some event.
  func run(until end: Time, isOver: () -> Bool = { false }) {
    while true {
      while let job = ready.popFirst() {
        steps += 1
        job.run()
      }
      guard !isOver(), let next = events.min, next.time <= end else { break }
      events.removeMin()
      now = next.time
      steps += 1
      next.action()
    }
    if !isOver() { now = max(now, end) }
  }

  /// Ends the world: nothing that was planned happens any more.
  func stop() {
    events = Heap()
  }

  /// An element at random; nil: there is none.
  func element<Element>(of elements: [Element]) -> Element? {
    elements.isEmpty ? nil : elements[Int(random(0...Int64(elements.count - 1)))]
  }

  /// The time until the next of events that happen independently of each other, that often a second.
  func pause(perSecond rate: Double) -> Time {
    Time(-log(1 - Double.random(in: 0..<1, using: &chance)) / rate * 1_000_000)
  }

  /// A whole number of the range.
  func random(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &chance) }

  /// Whether an event of this probability happens.
  func happens(_ probability: Double) -> Bool {
    probability > 0 && Double.random(in: 0..<1, using: &chance) < probability
  }
}

/// Units of `World.Time`.
extension World.Time {
  static func milliseconds(_ number: Int64) -> Int64 { number * 1000 }
  static func seconds(_ number: Int64) -> Int64 { number * 1_000_000 }
  init(_ duration: Duration) {
    self = duration.components.seconds * 1_000_000 + duration.components.attoseconds / 1_000_000_000_000
  }
}
