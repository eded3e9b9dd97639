import FanfareCore
import Foundation
import FrontEnd
import HTTPServer
import HTTPTypes
import NIOCore

/// Jobs: export and import of a hub's registrations.
///
/// Files come from the configured folder or are results of other jobs, by their signed URLs; no URL is ever fetched.
struct JobRoutes: Sendable {
  /// The most jobs in a list.
  private static let maximumListed = 100
  /// The bytes of a file that are read at a time.
  private static let pieceSize = 65_536
  private static let unknown = Refusal(.notFound, "The job does not exist.")

  let operations: FrontEndOperations
  let runner: JobRunner?
  private let downloads: DownloadGate

  init(_ operations: FrontEndOperations, _ runner: JobRunner?, _ downloads: DownloadGate) {
    (self.operations, self.runner, self.downloads) = (operations, runner, downloads)
  }

  var routes: [AzureRoute] {
    [
      AzureRoute(.post, "jobs", .manage) { request, caller in
        let body = try await request.body(upTo: operations.maximumBodySize)
        return try await create(body, request, by: caller)
      },
      AzureRoute(.get, "jobs", .manage) { request, caller in
        let folder = try requiredRunner().folder
        let hub = caller.hubName
        let jobs = try await offLoop { folder.jobs(hub: hub, limit: Self.maximumListed) }
        var feed: [UInt8] = []
        feed.appendFeed(id: request.location("jobs"), title: "NotificationHubJobs", updated: operations.clock.now()) {
          for job in jobs { append(job, to: &$0, request, caller.hubName) }
        }
        return AzureAnswer.document(feed, type: AtomType.feed)
      },
      AzureRoute(.get, "jobs/{id}", .manage) { request, caller in
        let folder = try requiredRunner().folder
        let (id, hub) = (request.parameters[0], caller.hubName)
        guard let job = try await offLoop({ folder.job(id, hub: hub) }) else { throw Self.unknown }
        return answer(job, request, caller.hubName)
      },
      AzureRoute(signed: .get, "jobs/{id}/{file}") { request in try await file(request) },
    ]
  }

  private func requiredRunner() throws(Refusal) -> JobRunner {
    guard let runner else {
      throw Refusal(.notFound, "Jobs are not available: azure.jobsFolder is not configured.")
    }
    return runner
  }

  private func create(
    _ body: ArraySlice<UInt8>, _ request: AzureRequest, by caller: Caller
  ) async throws -> Answer {
    let hub = caller.hubName
    let runner = try requiredRunner()
    let order: AzureJobRequest
    do { order = try AzureJobRequest(XMLTree(body)) } catch let error as XMLError {
      throw Refusal(.malformedBody, error.description)
    } catch let error as InvalidDescription {
      throw Refusal(.invalidField, error.description)
    }
    var input: String?
    if order.kind != .export, let text = order.importFile {
      input = try await offLoop { try find(text, runner.folder, hub) }
    }
    let now = operations.clock.now()
    let job = AzureJob(
      id: RegistrationID.timeOrdered(at: now).description, kind: order.kind, input: input,
      inputName: input == nil ? nil : order.importFile?.prefixUpToQuery, container: order.outputContainer, at: now)
    let isAdded = try await offLoop { try runner.add(job, hub: hub) }
    guard isAdded else { throw Refusal(.overloaded, "Too many jobs wait.") }
    operations.recordJob(job.id, kind: order.kind.rawValue, by: caller, request.original)
    var response = answer(job, request, hub)
    response.status = .created
    response.headers[.location] = request.location("jobs/\(job.id)")
    return response
  }

  /// Finds the file that a client names.
  private func find(_ text: String, _ folder: JobFolder, _ hub: HubName) throws(Refusal) -> String {
    if text.contains("://"), !text.lowercased().hasPrefix("file:") {
      guard let target = SignedURL.target(of: text, operations), target.path.count == 3, target.path[0] == "jobs",
        let output = AzureJob.Output(rawValue: target.path[2]),
        let file = folder.input(output, ofJob: target.path[1], hub: target.hub)
      else {
        throw Refusal(
          .invalidField,
          "ImportFileUri must be a signed URL of this server or file:NAME in the hub's folder; other URLs are not read")
      }
      return file
    }
    let name = text.split(separator: "/").last.map(String.init) ?? ""
    guard let file = folder.input(named: name.replacing("file:", with: ""), hub: hub) else {
      throw Refusal(.invalidField, "ImportFileUri names no file in the hub's folder of files")
    }
    return file
  }

  private func append(_ job: AzureJob, to document: inout [UInt8], _ request: AzureRequest, _ hub: HubName) {
    job.append(
      to: &document, link: { request.location("jobs/\($0)") },
      url: { SignedURL.url("jobs/\(job.id)/\($0.rawValue)", request, hub, operations) })
  }

  private func answer(_ job: AzureJob, _ request: AzureRequest, _ hub: HubName) -> Answer {
    var document: [UInt8] = []
    append(job, to: &document, request, hub)
    return AzureAnswer.document(document, type: AtomType.entry)
  }

  /// A file of results, which is read as the client takes it.
  private func file(_ request: AzureRequest) async throws -> Answer {
    let runner = try requiredRunner()
    guard let hub = request.hub, JobFolder.isID(request.parameters[0]),
      let output = AzureJob.Output(rawValue: request.parameters[1])
    else { throw Self.unknown }
    let place = try downloads.enter(hub)
    let path = runner.folder.path(of: output, job: request.parameters[0], hub: hub)
    let found = try await offLoop { () throws -> (handle: FileHandle, size: UInt64)? in
      guard let handle = FileHandle(forReadingAtPath: path) else { return nil }
      let size = try handle.seekToEnd()
      try handle.seek(toOffset: 0)
      return (handle, size)
    }
    guard let opened = found else { throw Self.unknown }
    let body = AnswerBody.inParts(length: Int(clamping: opened.size)) { [place] writer in
      defer { withExtendedLifetime(place) {} }
      var rest = Int(clamping: opened.size)
      while rest > 0 {
        let count = min(rest, Self.pieceSize)
        guard let data = try await offLoop({ try opened.handle.read(upToCount: count) }), !data.isEmpty else { break }
        rest -= data.count
        try await writer.write(ByteBuffer(bytes: data))
      }
    }
    return Answer(status: .ok, headers: [.contentType: "text/plain; charset=utf-8"], body: body)
  }
}
