import AsyncHTTPClient
import FanfareCore
import Foundation
import NIOCore
import NIOHTTP1
import Registry
import Support
import Testing

@testable import AzureHub

/// Jobs over registrations, and feedback, over a real socket.
@Suite(.timeLimit(.minutes(2))) struct JobTests {
  private static let hub = HubName("orders") ?? .default

  private static func job(_ type: String, _ input: String? = nil, output: String = "") -> String {
    """
    <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/atom+xml;type=entry;charset=utf-8">\
    <NotificationHubJob xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">\
    <OutputContainerUri><![CDATA[\(output)]]></OutputContainerUri>\
    \(input.map { "<ImportFileUri><![CDATA[\($0)]]></ImportFileUri>" } ?? "")<Type>\(type)</Type>\
    </NotificationHubJob></content></entry>
    """
  }

  private static func row(_ number: Int) -> DeviceRequest {
    DeviceRequest(
      id: .random(), hub: hub, user: "alice", platform: .apns, handle: String(format: "%064x", number),
      tags: ["news"])
  }

  /// Posts a job and waits for its end.
  private func run(_ body: String, _ harness: AzureHarness) async throws -> XMLTree {
    let posted = try await harness.request(.POST, "/orders/jobs?api-version=2020-06", as: .full, body: body)
    #expect(posted.status == 201, "\(posted.text)")
    let location = try #require(posted["Location"])
    let path = String(location[(location.firstRange(of: "/orders")?.lowerBound ?? location.startIndex)...])
    // Bounded by the suite's time limit; the job itself takes milliseconds.
    while true {
      let reply = try await harness.request(.GET, path, as: .full)
      let job = try #require(
        try XMLTree(Array(reply.text.utf8)[...]).child("content")?.child("NotificationHubJob"))
      if ["Completed", "Failed"].contains(job.value("Status")) { return job }
      await Task.yield()
    }
  }

  private func url(_ key: String, of job: XMLTree) throws -> String {
    let entry = job.child("OutputProperties")?.children.first { $0.value("Key") == key }
    return try #require(entry?.value("Value"))
  }

  private func path(_ url: String) -> String {
    String(url[(url.firstRange(of: "/orders")?.lowerBound ?? url.startIndex)...])
  }

  /// The clients for .NET and JavaScript require the element, and all give the URL of a container at Azure.
  @Test func containerComesBackAndIsNotWrittenTo() async throws {
    try await AzureHarness.run { harness in
      for (given, expected) in [
        ("https://store.blob.core.windows.net/jobs?sv=1&sig=secret", "https://store.blob.core.windows.net/jobs"),
        ("file:out", "file:out"), ("", nil),
      ] {
        let job = try await run(Self.job("ExportRegistrations", output: given), harness)
        #expect(job.value("Status") == "Completed")
        let url = try #require(job.value("OutputContainerUri"))
        let own = "http://127.0.0.1:\(harness.port)/orders/jobs/\(try #require(job.value("JobId")))"
        #expect(url == expected ?? own)
        let names = job.children.map(\.name)
        #expect(names.firstIndex(of: "OutputContainerUri") == names.firstIndex(of: "Status").map { $0 + 1 })
        #expect(try await harness.request(.GET, path(try self.url("OutputFilePath", of: job)), as: nil).status == 200)
      }
    }
  }

  @Test func exportIsReadAtItsSignedURL() async throws {
    try await AzureHarness.run { harness in
      for number in 0..<3 { try await harness.register(Self.row(number)) }
      let job = try await run(Self.job("ExportRegistrations"), harness)
      #expect(job.value("Status") == "Completed" && job.value("Progress") == "100")
      let file = try url("OutputFilePath", of: job)
      let output = try await harness.request(.GET, path(file), as: nil)
      #expect(output.status == 200)
      let lines = output.text.split(separator: "\n")
      #expect(lines.count == 3)
      for line in lines {
        let description = try RegistrationDescription(XMLTree(Array(line.utf8)[...]))
        #expect(description.tags.tags == ["news"] && description.tags.user == "alice")
      }
      // Without its signature, with a changed one, or after a day it is refused.
      let unsigned = try await harness.request(.GET, path(String(file.split(separator: "?")[0])), as: nil)
      #expect(unsigned.status == 401)
      let forged = try await harness.request(.GET, path(file.replacing("/output", with: "/failed")), as: nil)
      #expect(forged.status == 401)
      harness.clock.advance(by: .seconds(90_000))
      #expect(try await harness.request(.GET, path(file), as: nil).status == 401)

      let list = try await harness.request(.GET, "/orders/jobs", as: .full)
      #expect(list.text.contains("<Type>ExportRegistrations</Type>"))
      #expect(try await harness.request(.GET, "/orders/jobs", as: .listen).status == 401)
    }
  }

  @Test(arguments: [
    "https://evil.test/file.txt", "http://127.0.0.1:9/orders/jobs/x/output?se=99999999999&sig=00",
    "file:../../etc/passwd",
    "file:missing.txt", "/etc/passwd",
  ])
  func otherInputIsRefused(input: String) async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/jobs", as: .full, body: Self.job("ImportCreateRegistrations", input))
      #expect(reply.status == 400 && reply.text.contains("ImportFileUri"), "\(reply.text)")
    }
  }

  @Test func exportedInstallationIsDeletedByItsLines() async throws {
    try await AzureHarness.run { harness in
      let made = try await harness.request(
        .PUT, "/orders/installations/phone-1", as: .listen, body: InstallationTests.body)
      #expect(made.status == 200, "\(made.text)")
      let list = try await harness.request(.GET, "/orders/registrations", as: .full)
      let ids = try XMLTree(Array(list.text.utf8)[...]).children.compactMap {
        try $0.name == "entry" ? RegistrationDescription($0).id : nil
      }
      #expect(ids.count == 3)
      // The installation itself is the last of the list.
      try harness.file(
        "gone.txt",
        ids.reversed().map {
          "<AppleRegistrationDescription><RegistrationId>\($0)</RegistrationId><DeviceToken>00</DeviceToken>"
            + "</AppleRegistrationDescription>\n"
        }.joined())
      let job = try await run(Self.job("ImportDeleteRegistrations", "file:gone.txt"), harness)
      let failed = try await harness.request(.GET, path(try url("FailedFilePath", of: job)), as: nil)
      #expect(failed.status == 200 && failed.text.isEmpty, "\(failed.text)")
    }
  }

  @Test func importReadsAFileOfTheFolder() async throws {
    try await AzureHarness.run { harness in
      func line(_ id: String, _ token: Int) -> String {
        "<AppleRegistrationDescription><RegistrationId>\(id)</RegistrationId><Tags>news</Tags>"
          + "<DeviceToken>\(String(format: "%064x", token))</DeviceToken></AppleRegistrationDescription>"
      }
      try harness.file(
        "new.txt", [line("1-1-1", 1), "nonsense", "", line("1-1-2", 2), line("1-1-1", 3)].joined(separator: "\n"))
      let job = try await run(Self.job("ImportCreateRegistrations", "file:new.txt"), harness)
      #expect(job.value("Status") == "Completed")
      let output = try await harness.request(.GET, path(try url("OutputFilePath", of: job)), as: nil)
      #expect(
        output.text == "1 \(RegistrationID(azure: "1-1-1"))\n4 \(RegistrationID(azure: "1-1-2"))\n")
      let failed = try await harness.request(.GET, path(try url("FailedFilePath", of: job)), as: nil)
      #expect(failed.text.hasPrefix("2 the XML must have") && failed.text.hasSuffix("\n5 the registration exists\n"))

      try harness.file("gone.txt", line("1-1-1", 1) + "\n" + line("9-9-9", 1))
      let deletion = try await run(Self.job("ImportDeleteRegistrations", "file:gone.txt"), harness)
      let missing = try await harness.request(.GET, path(try url("FailedFilePath", of: deletion)), as: nil)
      #expect(missing.text == "2 the registration does not exist\n")
      #expect(
        try await harness.registry.registration(RegistrationID(azure: "1-1-1"), hub: Self.hub) == nil)
    }
  }

  /// As Java's client writes it: the URL is a CDATA section, so that its `&` is not escaped.
  @Test func importReadsTheResultOfAnotherJobAtItsSignedURL() async throws {
    try await AzureHarness.run { harness in
      let row = try await harness.register(Self.row(1))
      let export = try url("OutputFilePath", of: try await run(Self.job("ExportRegistrations"), harness))
      try await harness.registry.remove(row.id, hub: Self.hub, user: row.user, at: harness.clock.now())
      let job = try await run(Self.job("ImportUpsertRegistrations", export), harness)
      #expect(job.value("Status") == "Completed")
      let restored = try await harness.registry.registration(row.id, hub: Self.hub)
      #expect(restored?.handle == row.handle && restored?.tags == row.tags && restored?.user == row.user)
      // The list names the file, without its signature.
      let list = try await harness.request(.GET, "/orders/jobs", as: .full)
      let name = String(export.prefix { $0 != "?" })
      #expect(list.text.contains("<ImportFileUri>\(name)</ImportFileUri>"), "\(list.text)")

      // Another file under the same signature, a changed expiry, and the URL after its day.
      let forged = [
        export.replacing("/output", with: "/failed"), export.replacing("se=", with: "se=9"),
        export.replacing("sig=", with: "sig=0"), name,
      ]
      for url in forged { try await refuses(url, harness) }
      harness.clock.advance(by: SignedURL.lifetime)
      try await refuses(export, harness)
    }
  }

  @Test func anInstallationSurvivesTheImportOfItsExport() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/installations/phone-1"
      #expect(try await harness.request(.PUT, path, as: .listen, body: InstallationTests.body).status == 200)
      func read() async throws -> InstallationDocument {
        let reply = try await harness.request(.GET, path, as: .listen)
        return try InstallationDocument(Array(reply.text.utf8)[...], id: "phone-1")
      }
      let before = try await read()
      let export = try url("OutputFilePath", of: try await run(Self.job("ExportRegistrations"), harness))
      let job = try await run(Self.job("ImportUpsertRegistrations", export), harness)
      let failed = try await harness.request(.GET, self.path(try url("FailedFilePath", of: job)), as: nil)
      #expect(failed.text.isEmpty)
      #expect(try await read() == before)
    }
  }

  private func refuses(_ url: String, _ harness: AzureHarness) async throws {
    let reply = try await harness.request(
      .POST, "/orders/jobs", as: .full, body: Self.job("ImportUpsertRegistrations", url))
    #expect(reply.status == 400 && reply.text.contains("ImportFileUri"), "\(url): \(reply.text)")
  }

  @Test func updateNeedsTheRegistrationAndUpsertDoesNot() async throws {
    try await AzureHarness.run { harness in
      let row = try await harness.register(Self.row(1))
      func line(_ id: String) -> String {
        "<AppleRegistrationDescription><RegistrationId>\(id)</RegistrationId><Tags>$UserId:{alice},sport</Tags>"
          + "<DeviceToken>\(String(format: "%064x", id.count))</DeviceToken></AppleRegistrationDescription>"
      }
      try harness.file("both.txt", [line("\(row.id)"), line("5-5-5")].joined(separator: "\n"))
      let update = try await run(Self.job("ImportUpdateRegistrations", "file:both.txt"), harness)
      let failed = try await harness.request(.GET, path(try url("FailedFilePath", of: update)), as: nil)
      #expect(failed.text == "2 the registration does not exist\n")
      #expect(try await harness.registry.registration(row.id, hub: Self.hub)?.tags.contains("sport") == true)
      let upsert = try await run(Self.job("ImportUpsertRegistrations", "file:both.txt"), harness)
      let output = try await harness.request(.GET, path(try url("OutputFilePath", of: upsert)), as: nil)
      #expect(output.text == "1 \(row.id)\n2 \(RegistrationID(azure: "5-5-5"))\n")
    }
  }

  /// The process ended after the second line: the first result of the third is not counted.
  @Test func anImportGoesOnWhereAStopInterruptedIt() async throws {
    let (clock, temporary) = (ManualClock(), try TemporaryRegistry())
    let path = FileManager.default.temporaryDirectory.appending(path: "jobs-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let folder = JobFolder(path: path)
    func line(_ number: Int) -> String {
      "<AppleRegistrationDescription><RegistrationId>1-1-\(number)</RegistrationId>"
        + "<DeviceToken>\(String(format: "%064x", number))</DeviceToken></AppleRegistrationDescription>"
    }
    try FileManager.default.createDirectory(atPath: "\(path)/orders/files", withIntermediateDirectories: true)
    try (1...3).map(line).joined(separator: "\n")
      .write(toFile: "\(path)/orders/files/in.txt", atomically: true, encoding: .utf8)
    func job(_ status: AzureJob.Status, at moment: UnixTime) -> AzureJob {
      var job = AzureJob(
        id: RegistrationID.timeOrdered(at: moment).description, kind: .create, input: "orders/files/in.txt",
        inputName: nil, at: moment)
      job.status = status
      return job
    }
    var stopped = job(.running, at: clock.now())
    stopped.resumption = AzureJob.Resumption(lines: 2, output: 6, failed: 0)
    let old = job(.completed, at: clock.now() + (.zero - JobRunner.lifetime - .seconds(1)))
    for job in [stopped, old] { try folder.save(job, hub: Self.hub) }
    let output = folder.path(of: .output, job: stopped.id, hub: Self.hub)
    try "1 a\n2\n3 b\n".write(toFile: output, atomically: true, encoding: .utf8)
    let runner = JobRunner(
      folder: path, hubs: [Self.hub], registry: temporary.registry, clock: clock, logger: TestKafka.quietLogger)
    await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await runner.run() }
      while folder.job(stopped.id, hub: Self.hub)?.hasEnded != true { await Task.yield() }
      group.cancelAll()
    }
    #expect(folder.job(stopped.id, hub: Self.hub)?.status == .completed)
    let last = RegistrationID(azure: "1-1-3")
    #expect(try String(contentsOfFile: output, encoding: .utf8) == "1 a\n2\n3 \(last)\n")
    #expect(try await temporary.registry.registration(last, hub: Self.hub) != nil)
    #expect(try await temporary.registry.registration(RegistrationID(azure: "1-1-1"), hub: Self.hub) == nil)
    #expect(folder.job(old.id, hub: Self.hub) == nil)
  }

  @Test func jobOfAnotherHubDoesNotExist() async throws {
    try await AzureHarness.run { harness in
      let job = try await run(Self.job("ExportRegistrations"), harness)
      let id = try #require(job.value("JobId"))
      #expect(try await harness.request(.GET, "/orders/jobs/\(id)", as: .root).status == 200)
      #expect(try await harness.request(.GET, "/default/jobs/\(id)", as: .root).status == 404)
      // A signature holds for its hub.
      let file = path(try url("OutputFilePath", of: job)).replacing("/orders/", with: "/default/")
      #expect(try await harness.request(.GET, file, as: nil).status == 401)
    }
  }

  @Test func longLinesAreFoundAndSkipped() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let long = String(repeating: "x", count: 200_000)
    try "a\n\(long)\nb\n\n\(long)".write(toFile: path, atomically: true, encoding: .utf8)
    let reader = try LineReader(path)
    var counts: [Int] = []
    while let line = try reader.next() { counts.append(line.count) }
    #expect(counts == [1, LineReader.maximumLength + 1, 1, 0, LineReader.maximumLength + 1])
  }

  @Test func feedbackListsDeadDevices() async throws {
    try await AzureHarness.run { harness in
      let row = try await harness.register(Self.row(7))
      let now = harness.clock.now()
      _ = try await harness.registry.drop(
        [DeadDevice(hub: Self.hub, registration: row.id, handle: row.handle, since: nil, reason: "Unregistered")],
        at: now)
      let url = try await harness.request(.GET, "/orders/feedbackcontainer?api-version=2020-06", as: .full)
      #expect(url.status == 200 && url["Content-Type"] == "text/plain; charset=utf-8")
      #expect(url.text.hasPrefix("http://127.0.0.1:\(harness.port)/orders/feedbackcontainer/"))
      let file = try await harness.request(.GET, path(url.text), as: nil)
      let feedback = try XMLTree(Array(file.text.utf8)[...])
      #expect(feedback.value("RegistrationId") == row.id.description)
      #expect(feedback.value("NotificationSystemError") == "ExpiredChannel")
    }
  }
}

/// Downloads of files: their URLs need no credentials, and their clients may read slowly.
extension JobTests {
  @Test func aFileIsReadAsItsClientTakesIt() async throws {
    try await AzureHarness.run { harness in
      let job = try await run(Self.job("ExportRegistrations"), harness)
      let file = path(try url("OutputFilePath", of: job))
      let size = 200_000_000
      try harness.resize("jobs/\(try #require(job.value("JobId")))/Output.txt", to: size)
      var request = HTTPClientRequest(url: "http://127.0.0.1:\(harness.port)\(file)")
      request.method = .GET
      // Those that are not read keep their places; the last one waits for one.
      var held: [HTTPClientResponse] = []
      for _ in 0..<DownloadGate.maximumPerHub {
        let response = try await HTTPClient.shared.execute(request, timeout: .minutes(1))
        #expect(response.status == .ok && response.headers["Content-Length"] == ["\(size)"])
        held.append(response)
      }
      let refused = try await harness.request(.GET, file, as: nil)
      #expect(refused.status == 503 && refused["Retry-After"] != nil, "\(refused.text)")
      let feedback = try await harness.request(.GET, "/orders/feedbackcontainer", as: .full)
      let another = try await harness.request(.GET, path(feedback.text), as: nil)
      #expect(another.status == 503)
      var bytes = 0
      for try await chunk in try #require(held.first).body { bytes += chunk.readableBytes }
      #expect(bytes == size)
      held = []
      // The places of those that were given up are free soon.
      try harness.resize("jobs/\(try #require(job.value("JobId")))/Output.txt", to: 0)
      while try await harness.request(.GET, file, as: nil).status != 200 { await Task.yield() }
    }
  }
}

extension AzureHarness {
  /// Gives a file of the hub another size, with zeros.
  fileprivate func resize(_ name: String, to size: Int) throws {
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(jobs)/orders/\(name)"))
    try handle.truncate(atOffset: UInt64(size))
    try handle.close()
  }

  /// Completes an issued registration.
  @discardableResult
  fileprivate func register(_ request: DeviceRequest) async throws -> Registration {
    let id = try await registry.issue(hub: request.hub, handle: nil, at: clock.now())
    return try await registry.complete(
      DeviceRequest(
        id: id, hub: request.hub, user: request.user, platform: request.platform, handle: request.handle,
        tags: request.tags), at: clock.now())
  }

  /// Puts a file where jobs may read it.
  fileprivate func file(_ name: String, _ text: String) throws {
    let folder = "\(jobs)/orders/files"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
  }
}
