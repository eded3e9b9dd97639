import NIOCore

/// Runs tasks on an event loop instead of Swift's own threads.
///
/// A job blocks every connection of the loop: work of more than a fraction of a millisecond belongs elsewhere.
final class EventLoopExecutor: TaskExecutor {
  private let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
