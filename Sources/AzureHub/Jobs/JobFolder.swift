import FanfareCore
import Foundation

/// The folder of the jobs' files: for each hub `HUB/files` with files to import, which the operator puts there, and
/// `HUB/jobs/ID` with a job and its results.
struct JobFolder: Sendable {
  let path: String

  private func folder(_ hub: HubName, _ name: String) -> String { "\(path)/\(hub)/\(name)" }

  private func folder(of job: String, _ hub: HubName) -> String { folder(hub, "jobs/\(job)") }

  func path(of output: AzureJob.Output, job: String, hub: HubName) -> String {
    "\(folder(of: job, hub))/\(output.fileName)"
  }

  /// Whether the text is the id of a job, and so harmless in a path.
  static func isID(_ text: String) -> Bool { RegistrationID(text) != nil && text == text.lowercased() }

  /// The file in the hub's folder of files, relative to the folder of all jobs; nil if there is no such file. Links
  /// are not followed.
  func input(named name: String, hub: HubName) -> String? {
    let isPlain = name.utf8.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
    guard isPlain, (1...128).contains(name.utf8.count), !name.hasPrefix(".") else { return nil }
    return file("\(hub)/files/\(name)")
  }

  /// The results of a job as the input of another; nil if there is no such file.
  func input(_ output: AzureJob.Output, ofJob job: String, hub: HubName) -> String? {
    Self.isID(job) ? file("\(hub)/jobs/\(job)/\(output.fileName)") : nil
  }

  private func file(_ relative: String) -> String? {
    // A missing file is an answer.
    let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path)/\(relative)")
    return attributes?[.type] as? FileAttributeType == .typeRegular ? relative : nil
  }

  /// Writes a job, as a whole or not at all.
  func save(_ job: AzureJob, hub: HubName) throws {
    let folder = folder(of: job.id, hub)
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try JSONEncoder().encode(job).write(to: URL(fileURLWithPath: "\(folder)/job.json"), options: .atomic)
  }

  /// Deletes a job with its results.
  func remove(_ job: String, hub: HubName) throws { try FileManager.default.removeItem(atPath: folder(of: job, hub)) }

  /// The job; nil if there is none, or its file is damaged.
  func job(_ id: String, hub: HubName) -> AzureJob? {
    guard Self.isID(id) else { return nil }
    // A missing or damaged file is no job.
    guard let data = try? Data(contentsOf: URL(fileURLWithPath: "\(folder(of: id, hub))/job.json")),
      let job = try? JSONDecoder().decode(AzureJob.self, from: data)  // as above
    else { return nil }
    return job
  }

  /// The hub's newest jobs, at most `limit`, the newest first.
  func jobs(hub: HubName, limit: Int) -> [AzureJob] {
    // Without a folder there are no jobs.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder(hub, "jobs"))) ?? []
    return names.sorted(by: >).prefix(limit).compactMap { job($0, hub: hub) }
  }
}
