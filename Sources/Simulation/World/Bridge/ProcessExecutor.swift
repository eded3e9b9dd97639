import DequeModule

/// A job of a task, ready to run in its process.
struct Job {
  let job: UnownedJob
  let executor: ProcessExecutor

  /// Runs the job, or keeps it while its process is frozen.
  func run() { executor.run(self) }
}

/// Runs the tasks of one process, in the world's order.
///
/// `@unchecked Sendable`: see `World`.
final class ProcessExecutor: TaskExecutor, @unchecked Sendable {
  private let world: World
  private var isFrozen = false
  private var kept = Deque<Job>()

  init(_ world: World) {
    self.world = world
  }

  func enqueue(_ job: consuming ExecutorJob) {
    world.enqueue(Job(job: UnownedJob(job), executor: self))
  }

  func run(_ job: Job) {
    if isFrozen { kept.append(job) } else { unsafe job.job.runSynchronously(on: asUnownedTaskExecutor()) }
  }

  func freeze() { isFrozen = true }

  func thaw() {
    isFrozen = false
    while let job = kept.popFirst() { world.enqueue(job) }
  }
}
