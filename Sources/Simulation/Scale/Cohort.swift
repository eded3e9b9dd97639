/// Sends that were accepted in the same step.
struct Cohort: Equatable {
  /// The number of the step.
  var born: Int
  var count: Int
}

/// Cohorts that wait, the oldest first.
struct CohortQueue {
  private var cohorts: [Cohort] = []
  private var head = 0
  /// How many sends wait.
  private(set) var count = 0

  /// The step of the oldest cohort; nil if none waits.
  var oldest: Int? { head < cohorts.count ? cohorts[head].born : nil }

  mutating func append(_ cohort: Cohort) {
    guard cohort.count > 0 else { return }
    count += cohort.count
    if let last = cohorts.last, head < cohorts.count, last.born == cohort.born {
      cohorts[cohorts.count - 1].count += cohort.count
    } else {
      cohorts.append(cohort)
    }
  }

  /// Puts sends back that were taken: they come first again.
  mutating func putBack(_ cohort: Cohort) {
    guard cohort.count > 0 else { return }
    count += cohort.count
    if head > 0 {
      head -= 1
      cohorts[head] = cohort
    } else {
      cohorts.insert(cohort, at: 0)
    }
  }

  /// Takes the youngest sends, at most so many of one step.
  mutating func popLast(_ most: Int) -> Cohort? {
    guard most > 0, head < cohorts.count, let last = cohorts.last else { return nil }
    let taken = Cohort(born: last.born, count: min(most, last.count))
    cohorts[cohorts.count - 1].count -= taken.count
    if taken.count == last.count { cohorts.removeLast() }
    count -= taken.count
    return taken
  }

  /// Takes sends of the oldest cohort, at most so many.
  mutating func pop(_ most: Int) -> Cohort? {
    guard most > 0, head < cohorts.count else { return nil }
    let taken = Cohort(born: cohorts[head].born, count: min(most, cohorts[head].count))
    cohorts[head].count -= taken.count
    count -= taken.count
    if cohorts[head].count == 0 {
      head += 1
      if head == cohorts.count {
        cohorts.removeAll(keepingCapacity: true)
        head = 0
      } else if head > 64, head * 2 > cohorts.count {
        cohorts.removeFirst(head)
        head = 0
      }
    }
    return taken
  }
}

/// Numbers that are due in later steps.
struct Wheel {
  private var slots: [Int]
  /// The sum of all slots.
  private(set) var count = 0

  /// For events up to so many steps ahead.
  init(steps: Int) {
    var size = 1
    while size <= steps { size *= 2 }
    slots = Array(repeating: 0, count: size)
  }

  @inline(__always)
  mutating func add(_ number: Int, in delay: Int, after step: Int) {
    slots[(step + min(max(1, delay), slots.count - 1)) & (slots.count - 1)] += number
    count += number
  }

  /// Takes out the number that is due in this step.
  @inline(__always)
  mutating func take(at step: Int) -> Int {
    let index = step & (slots.count - 1)
    let number = slots[index]
    slots[index] = 0
    count -= number
    return number
  }

  /// Takes out everything.
  mutating func clear() -> Int {
    defer {
      for index in slots.indices { slots[index] = 0 }
      count = 0
    }
    return count
  }
}
