import FanfareCore

/// A job over the registrations of a hub: an export, or an import from a file with one description in a line.
struct AzureJob: Codable, Hashable, Sendable {
  enum Kind: String, CaseIterable, Codable, Sendable {
    case export = "ExportRegistrations"
    /// A line with the id of an existing registration fails.
    case create = "ImportCreateRegistrations"
    /// A line without the id of an existing registration fails.
    case update = "ImportUpdateRegistrations"
    case delete = "ImportDeleteRegistrations"
    case upsert = "ImportUpsertRegistrations"
  }

  enum Status: String, Codable, Sendable {
    case started = "Started"
    case running = "Running"
    case completed = "Completed"
    case failed = "Failed"
  }

  /// A file of results.
  enum Output: String, CaseIterable, Sendable {
    case output, failed

    var fileName: String {
      switch self {
      case .output: "Output.txt"
      case .failed: "Failed.txt"
      }
    }
  }

  /// A UUID that sorts by the time of creation.
  let id: String
  let kind: Kind
  /// The file to import, relative to the folder of all jobs.
  let input: String?
  /// `ImportFileUri` as the client gave it, without a signature.
  let inputName: String?
  /// `OutputContainerUri` as the client gave it, without a signature. Nothing is written there: results are at the
  /// URLs of `OutputProperties`.
  let container: String?
  let createdAt: Int64
  var updatedAt: Int64
  var status = Status.started
  /// 0 to 100.
  var progress = 0.0
  var failure: String?
  /// The point from which an import goes on after a stop.
  var resumption: Resumption?

  struct Resumption: Codable, Hashable, Sendable {
    /// The lines of the file that were applied.
    var lines = 0
    /// The bytes of the results that belong to them.
    var output: UInt64 = 0
    var failed: UInt64 = 0
  }

  init(id: String, kind: Kind, input: String?, inputName: String?, container: String? = nil, at now: UnixTime) {
    (self.id, self.kind, self.input, self.inputName, self.container) = (id, kind, input, inputName, container)
    (createdAt, updatedAt) = (now.milliseconds, now.milliseconds)
  }

  var hasEnded: Bool { status == .completed || status == .failed }
}

/// A client's order: `<NotificationHubJob>` in an entry of Atom or by itself.
struct AzureJobRequest: Hashable {
  let kind: AzureJob.Kind
  let importFile: String?
  /// Without its query, in which a signature may be.
  let outputContainer: String?

  private static let maximumContainer = 2048

  init(_ document: XMLTree) throws(InvalidDescription) {
    guard let job = document.name == "entry" ? document.child("content")?.child("NotificationHubJob") : document,
      job.name == "NotificationHubJob"
    else { throw InvalidDescription("the body must be a NotificationHubJob") }
    guard let type = job.value("Type")?.trimmingSpace, let kind = AzureJob.Kind(rawValue: type) else {
      throw InvalidDescription(
        "Type must be one of \(AzureJob.Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    func text(_ name: String) -> String? {
      job.value(name).map(\.trimmingSpace).flatMap { $0.isEmpty ? nil : $0 }
    }
    self.kind = kind
    importFile = text("ImportFileUri")
    outputContainer = text("OutputContainerUri")?.prefixUpToQuery
    guard outputContainer?.utf8.count ?? 0 <= Self.maximumContainer else {
      throw InvalidDescription("OutputContainerUri must have at most \(Self.maximumContainer) bytes")
    }
    guard kind == .export || importFile != nil else { throw InvalidDescription("ImportFileUri is missing") }
  }
}

extension AzureJob {
  /// The document of one job. `url` makes the URL of a file of results.
  func document(link: (String) -> String, url: (Output) -> String) -> [UInt8] {
    var document: [UInt8] = []
    append(to: &document, link: link, url: url)
    return document
  }

  func append(to document: inout [UInt8], link: (String) -> String, url: (Output) -> String) {
    document.appendEntry(
      id: link(id), title: id, published: UnixTime(milliseconds: createdAt), updated: UnixTime(milliseconds: updatedAt)
    ) { content in
      content.appendElement("NotificationHubJob", attributes: XMLNamespace.ofDescriptions) { job in
        job.appendElement("JobId", id)
        job.appendElement("Progress", progress == progress.rounded() ? "\(Int(progress))" : "\(progress)")
        job.appendElement("Type", kind.rawValue)
        job.appendElement("Status", status.rawValue)
        // Required by the clients for .NET and JavaScript.
        job.appendElement("OutputContainerUri", container ?? link(id).prefixUpToQuery)
        if let inputName { job.appendElement("ImportFileUri", inputName) }
        if let failure { job.appendElement("Failure", failure) }
        if hasEnded {
          let namespace = #" xmlns:d3p1="http://schemas.microsoft.com/2003/10/Serialization/Arrays""#
          job.appendElement("OutputProperties", attributes: namespace) { properties in
            for (key, output) in [("OutputFilePath", Output.output), ("FailedFilePath", Output.failed)] {
              properties.appendElement("d3p1:KeyValueOfstringstring") {
                $0.appendElement("d3p1:Key", key)
                $0.appendElement("d3p1:Value", url(output))
              }
            }
          }
        }
        job.appendElement("CreatedAt", UnixTime(milliseconds: createdAt).description)
        job.appendElement("UpdatedAt", UnixTime(milliseconds: updatedAt).description)
      }
    }
  }
}

extension String {
  /// A URL without its query, in which a signature may be.
  var prefixUpToQuery: String { String(prefix { $0 != "?" }) }
}
