package import FanfareCore
import Foundation
package import Logging
import ServiceLifecycle

/// Runs the jobs of all hubs, one after the other, and deletes those that ended a week ago.
///
/// After a stop an export begins again, and an import goes on. After a crash an import applies up to `savedLines` lines
/// a second time, of which those that create or delete are then among the failed ones. While the registry is
/// unavailable, a job waits for up to an hour. The folder belongs to one process.
package final class JobRunner: Service {
  private struct Entry: Sendable {
    let job: String
    let hub: HubName
  }

  let folder: JobFolder
  private let hubs: [HubName]
  private let registry: any DeviceRegistry & RegistrationDirectory & RegistrationInquiry
  private let clock: any WallClock
  private let logger: Logger
  private let queue: AsyncStream<Entry>
  private let waiting: AsyncStream<Entry>.Continuation

  /// The most jobs that wait.
  private static let maximumWaiting = 100
  /// How long a job is kept that has ended.
  static let lifetime: Duration = .seconds(7 * 86_400)
  /// The pause before a call is repeated for which the registry was unavailable, and the most pauses: an hour.
  private static let pause: Duration = .seconds(2)
  private static let maximumPauses = 1800
  /// The lines of an import after which its state is saved.
  private static let savedLines = 1000
  /// The registrations that an export reads at once.
  private static let pageSize = 1000

  package init(
    folder: String, hubs: [HubName], registry: any DeviceRegistry & RegistrationDirectory & RegistrationInquiry,
    clock: any WallClock = SystemWallClock(), logger: Logger
  ) {
    self.folder = JobFolder(path: folder)
    (self.hubs, self.registry, self.clock, self.logger) = (hubs, registry, clock, logger)
    (queue, waiting) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.maximumWaiting))
  }

  /// Stores a job that waits to be run. Returns false if too many wait.
  func add(_ job: AzureJob, hub: HubName) throws -> Bool {
    try folder.save(job, hub: hub)
    if case .enqueued = waiting.yield(Entry(job: job.id, hub: hub)) { return true }
    try folder.remove(job.id, hub: hub)
    return false
  }

  package func run() async throws {
    // Those that an earlier process has left. They do not wait in the queue, which may be too short for them.
    let unfinished = hubs.flatMap { hub in
      folder.jobs(hub: hub, limit: .max).reversed().filter { !$0.hasEnded }.map { Entry(job: $0.id, hub: hub) }
    }
    await cancelWhenGracefulShutdown {
      for entry in unfinished where !Task.isCancelled { await self.run(entry) }
      for await entry in self.queue { await self.run(entry) }
    }
  }

  /// Runs a job to its end, unless the process is stopped.
  private func run(_ entry: Entry) async {
    removeOldJobs()
    guard var job = folder.job(entry.job, hub: entry.hub), !job.hasEnded else { return }
    do {
      job.status = .running
      try save(&job, entry.hub)
      try await run(&job, entry.hub)
      (job.status, job.progress) = (.completed, 100)
    } catch {
      // The next start goes on with it. A call that is cancelled may end with any error.
      if Task.isCancelled { return }
      job.status = .failed
      job.failure = error is RegistryError ? "the registry was unavailable" : "a file could not be read or written"
      logger.warning(
        "Job over registrations failed",
        metadata: [LogKeys.job: "\(job.id)", LogKeys.hub: "\(entry.hub)", LogKeys.cause: "\(error)"])
    }
    do { try save(&job, entry.hub) } catch {
      logger.warning(
        "State of a job cannot be written",
        metadata: [LogKeys.job: "\(job.id)", LogKeys.hub: "\(entry.hub)", LogKeys.cause: "\(error)"])
    }
  }

  private func removeOldJobs() {
    let moment = (clock.now() + (.zero - Self.lifetime)).milliseconds
    for hub in hubs {
      for job in folder.jobs(hub: hub, limit: .max) where job.hasEnded && job.updatedAt < moment {
        // A folder that cannot be deleted is found again after the next job.
        try? folder.remove(job.id, hub: hub)
      }
    }
  }

  /// Calls the registry, again and again while it is unavailable.
  private func patiently<Value>(_ call: () async throws -> Value) async throws -> Value {
    for pause in 0..<Self.maximumPauses {
      do { return try await call() } catch let error as RegistryError where error.code == .unavailable {
        try Task.checkCancellation()
        if pause == 0 {
          logger.warning("Job over registrations waits for the registry", metadata: [LogKeys.cause: "\(error)"])
        }
        try await Task.sleep(for: Self.pause)
      }
    }
    return try await call()
  }

  private func save(_ job: inout AzureJob, _ hub: HubName) throws {
    job.updatedAt = clock.now().milliseconds
    try folder.save(job, hub: hub)
  }

  private func run(_ job: inout AzureJob, _ hub: HubName) async throws {
    if job.kind == .export { job.resumption = nil }
    let output = try TextFile(folder.path(of: .output, job: job.id, hub: hub), keeping: job.resumption?.output)
    let failed = try TextFile(folder.path(of: .failed, job: job.id, hub: hub), keeping: job.resumption?.failed)
    if job.kind == .export {
      try await export(&job, hub, to: output)
    } else {
      try await load(&job, hub, output, failed)
    }
    try output.close()
    try failed.close()
  }

  private func export(_ job: inout AzureJob, _ hub: HubName, to output: TextFile) async throws {
    var slice: RegistrationSlice? = .whole
    while let part = slice {
      try Task.checkCancellation()
      let page = try await patiently {
        try await registry.list(.everyone, hub: hub, of: part, limit: Self.pageSize)
      }
      var text: [UInt8] = []
      for row in page.registrations {
        RegistrationEntry(row, isOlder: false).appendDescription(to: &text)
        text.append(UInt8(ascii: "\n"))
      }
      try output.write(text)
      slice = page.last.flatMap { RegistrationSlice.whole.after($0) }
      if let last = page.last { job.progress = (RegistrationSlice.whole.share(upTo: last) * 100).rounded() }
      try save(&job, hub)
    }
  }

  private func load(_ job: inout AzureJob, _ hub: HubName, _ output: TextFile, _ failed: TextFile) async throws {
    guard let input = job.input else { return }
    let lines = try LineReader("\(folder.path)/\(input)")
    let done = job.resumption?.lines ?? 0
    var finished = 0
    func note() throws {
      job.resumption = AzureJob.Resumption(
        lines: max(finished, done), output: try output.length(), failed: try failed.length())
      job.progress = (lines.share * 100).rounded()
      try save(&job, hub)
    }
    do {
      while let line = try lines.next() {
        let number = finished + 1
        if number > done {
          try Task.checkCancellation()
          try await load(line, number, job.kind, hub, output, failed)
        }
        finished = number
        if finished > done, finished.isMultiple(of: Self.savedLines) { try note() }
      }
    } catch  where Task.isCancelled {
      // The line whose call was interrupted is applied again.
      try note()
      throw error
    }
  }

  private func load(
    _ line: ArraySlice<UInt8>, _ number: Int, _ kind: AzureJob.Kind, _ hub: HubName, _ output: TextFile,
    _ failed: TextFile
  ) async throws {
    do {
      guard line.count <= LineReader.maximumLength else {
        throw InvalidDescription("the line has more than \(LineReader.maximumLength) bytes")
      }
      guard line.contains(where: { $0 > 0x20 }) else { return }
      let id = try await patiently { try await apply(kind, line, hub) }
      try output.write(Array("\(number) \(id)\n".utf8))
    } catch let error as InvalidDescription {
      try failed.write(Array("\(number) \(error)\n".utf8))
    } catch let error as RegistryError where error.code != .unavailable {
      try failed.write(Array("\(number) \(error)\n".utf8))
    }
  }

  /// Applies one line. Returns the id of the registration.
  private func apply(_ kind: AzureJob.Kind, _ line: ArraySlice<UInt8>, _ hub: HubName) async throws -> String {
    let description: RegistrationDescription
    do { description = try RegistrationDescription(XMLTree(line)) } catch let error as XMLError {
      throw InvalidDescription(error.description)
    }
    let id = description.id.map { RegistrationID(azure: $0) } ?? .random()
    let stored = description.id == nil ? nil : try await registry.registration(id, hub: hub)
    switch (kind, stored) {
    case (.create, .some): throw InvalidDescription("the registration exists")
    case (.delete, nil):
      // The file may have an installation before its templates.
      guard try await registry.removedTogether(id, hub: hub) else {
        throw InvalidDescription("the registration does not exist")
      }
    case (.update, nil): throw InvalidDescription("the registration does not exist")
    case (.delete, let stored?):
      try await registry.remove(id, hub: hub, user: stored.user, at: clock.now())
    default: _ = try await registry.complete(description.request(id: id, hub: hub), at: clock.now())
    }
    return id.description
  }
}

/// A file that is written from its beginning, or behind a part that is kept.
final class TextFile {
  private let handle: FileHandle

  init(_ path: String, keeping length: UInt64?) throws {
    let isNew = length == nil || !FileManager.default.fileExists(atPath: path)
    if isNew {
      guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
        throw CocoaError(.fileWriteUnknown)
      }
    }
    guard let handle = FileHandle(forUpdatingAtPath: path) else { throw CocoaError(.fileWriteUnknown) }
    self.handle = handle
    if let length, !isNew { try handle.truncate(atOffset: length) }
    try handle.seekToEnd()
  }

  /// The bytes written so far, those that were kept among them.
  func length() throws -> UInt64 { try handle.offset() }

  func write(_ bytes: [UInt8]) throws { try handle.write(contentsOf: Data(bytes)) }

  func close() throws { try handle.close() }
}

/// Reads a file line by line.
final class LineReader {
  /// The most bytes of a line.
  static let maximumLength = 65_536
  private static let chunk = 65_536

  private let handle: FileHandle
  private let size: UInt64
  private var position: UInt64 = 0
  private var buffer: [UInt8] = []
  private var start = 0
  private var hasEnded = false

  init(_ path: String) throws {
    guard let handle = FileHandle(forReadingAtPath: path) else { throw CocoaError(.fileReadNoSuchFile) }
    self.handle = handle
    size = try handle.seekToEnd()
    try handle.seek(toOffset: 0)
  }

  /// The part of the file that was read, from 0 to 1.
  var share: Double { size == 0 ? 1 : Double(position) / Double(size) }

  /// The next line without its end; nil at the end of the file. Of a line that is too long, the first bytes, one more
  /// than the limit.
  func next() throws -> ArraySlice<UInt8>? {
    var long: ArraySlice<UInt8>?
    while true {
      if let end = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        return long ?? buffer[start..<end].prefix(Self.maximumLength + 1)
      }
      if buffer.count - start > Self.maximumLength {
        long = long ?? buffer[start...].prefix(Self.maximumLength + 1)
        start = buffer.count
      }
      if hasEnded {
        let line = buffer[start...]
        start = buffer.count
        return long ?? (line.isEmpty ? nil : line)
      }
      buffer.removeSubrange(..<start)
      start = 0
      let data = try handle.read(upToCount: Self.chunk) ?? Data()
      hasEnded = data.isEmpty
      position += UInt64(data.count)
      buffer += data
    }
  }
}

/// The metadata keys of the log lines.
enum LogKeys {
  static let cause = "error"
  static let hub = "hub"
  static let job = "job.id"
}
