package import Worker

/// How often runs have reached each step of a worker, and each phase with each fault.
///
/// A step or a pair that no run reaches is one in which the simulation cannot find a mistake: the profiles are made so
/// that together they reach all of them.
package struct Coverage: Sendable {
  /// A phase in which an item or a device is between two events.
  package enum Place: Hashable, Sendable, CaseIterable {
    case item(WorkerStep.Item, ItemPhase)
    case device(DevicePhase)

    /// Without those that are left in the same turn.
    package static let allCases: [Place] =
      [.queued, .resolving, .dispatching, .settling].map { .item(.record, $0) }
      + [.walking, .settling].map { .item(.segment, $0) } + [.dispatching, .settling].map { .item(.page, $0) }
      + [.queued, .checking, .inFlight, .resting].map { .device($0) }
  }

  /// A fault begins while a worker that it concerns has something in the phase.
  package struct Situation: Hashable, Sendable, CaseIterable {
    package let fault: Profile.Fault
    package let place: Place

    package init(_ fault: Profile.Fault, in place: Place) { (self.fault, self.place) = (fault, place) }

    package static let allCases = Profile.Fault.allCases.flatMap { fault in
      Place.allCases.map { Situation(fault, in: $0) }
    }
  }

  /// Everything of one kind that can be reached, with the event that leads to it, and how often it was.
  package struct List: Sendable {
    package let name: String
    package let rows: [(name: String, event: String, count: Int)]

    package var reached: Int { rows.count { $0.count > 0 } }
    package var missed: [String] { rows.filter { $0.count == 0 }.map(\.name) }
  }

  package private(set) var steps: [WorkerStep: Int] = [:]
  package private(set) var situations: [Situation: Int] = [:]

  package init() {}

  fileprivate mutating func reach(_ step: WorkerStep) { steps[step, default: 0] += 1 }
  fileprivate mutating func reach(_ situation: Situation) { situations[situation, default: 0] += 1 }

  package mutating func add(_ other: Coverage) {
    steps.merge(other.steps, uniquingKeysWith: +)
    situations.merge(other.situations, uniquingKeysWith: +)
  }

  package var lists: [List] {
    stepLists + [List(name: "fault × phase", rows: Situation.allCases.map { ("\($0)", "", situations[$0] ?? 0) })]
  }

  package var stepLists: [List] {
    func list(_ name: String, _ rows: [WorkerStep.Row]) -> List {
      List(name: name, rows: rows.map { ("\($0.step)", $0.event, steps[$0.step] ?? 0) })
    }
    return [list("transitions", WorkerStep.transitions), list("outcomes", WorkerStep.outcomes)]
  }
}

extension Coverage.Place: CustomStringConvertible {
  package var description: String {
    switch self {
    case .item(let item, let phase): "\(item) \(phase)"
    case .device(let phase): "device \(phase)"
    }
  }
}

extension Coverage.Situation: CustomStringConvertible {
  package var description: String { "\(fault) × \(place)" }
}

/// The steps of one worker, and how much is in each phase now.
///
/// `@unchecked Sendable`: see `World`.
final class StepLog: @unchecked Sendable {
  private static let known = Set((WorkerStep.transitions + WorkerStep.outcomes).map(\.step))

  private(set) var coverage = Coverage()
  private var present: [Coverage.Place: Int] = [:]

  /// Adds a step. Returns whether it is one of those that a worker takes.
  func add(_ step: WorkerStep) -> Bool {
    coverage.reach(step)
    switch step {
    case .item(let item, let from, let to):
      present[.item(item, from), default: 0] -= 1
      if let to { present[.item(item, to), default: 0] += 1 }
    case .device(let from, let to):
      if let from { present[.device(from), default: 0] -= 1 }
      if let to { present[.device(to), default: 0] += 1 }
    case .outcome: break
    }
    return Self.known.contains(step)
  }

  /// Notes that a fault begins that concerns the worker.
  func meet(_ fault: Profile.Fault) {
    for place in Coverage.Place.allCases where present[place] ?? 0 > 0 {
      coverage.reach(Coverage.Situation(fault, in: place))
    }
  }
}
