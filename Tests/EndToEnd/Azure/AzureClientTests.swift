import FanfareCore
import Foundation
import Support
import Testing

@testable import fanfare_dev

/// Clients of Azure Notification Hubs that nobody here wrote, and the tutorial's back end, against a whole deployment.
///
/// What a client returns proves little: the tests look at the registrations and sends of Fanfare's own API, at the
/// topics by the audit, and at what arrived on the simulated devices.
@Suite(.serialized, .timeLimit(.minutes(3))) struct AzureClientTests {
  @Test(.enabled(if: PyPIClients.areInstalled)) func clientsOfAzureRunUnchanged() async throws {
    try await AzureSettings.withDeployment { deployment, api in
      let certificates = try TestCertificates()
      let secure = try await Self.secureFrontEnd(certificates, deployment)
      let authority = deployment.directory.appending(path: "authority.pem")
      try Data(certificates.authorityPEM.utf8).write(to: authority)
      try await PyPIClients.with(trusting: authority, directory: deployment.directory) { clients in
        let plain = AzureDoor(api)
        for (name, connection) in [("plain", plain.connectionString()), ("secure", secure)] {
          let walk = ClientWalk(
            clients: clients, deployment: deployment, api: api, door: plain, connection: connection, name: name)
          try await walk.unofficialClient()
          // The other client knows https alone.
          if name == "secure" { try await walk.restClient() }
        }
        #expect(clients.uncalled == [], "every method is called")
      }
      try await Self.audit(deployment)
    }
  }

  @Test func tutorialRunsUnchanged() async throws {
    try await AzureSettings.withDeployment { deployment, api in
      let backend = TutorialBackend(door: AzureDoor(api))
      for dialect in AzureDialect.all {
        try await Self.tutorial(dialect, backend, deployment, api)
      }
      try await Self.audit(deployment)
    }
  }

  private static func tutorial(
    _ dialect: AzureDialect, _ backend: TutorialBackend, _ deployment: Deployment, _ api: Caller
  ) async throws {
    let handle = AzureSettings.handle("tutorial", dialect.platform)
    let id = try await backend.registrationID(for: handle)
    let created = try await backend.register(id, handle, dialect, user: "bob", tags: ["news"])
    #expect(created.status == 200, "\(created.body)")
    #expect(created.headers["etag"] != nil && created.body.contains("<\(dialect.description)"))
    // The app comes again: the id is found by its handle, and the registration is replaced.
    #expect(try await backend.registrationID(for: handle) == id)
    #expect(try await backend.register(id, handle, dialect, user: "bob").status == 200)
    let stored = try await api.get("/api/registrations?user=bob", user: "operator").json
    let registrations = try #require(stored["registrations"] as? [[String: Any]])
    let own = registrations.filter { $0["platform"] as? String == dialect.platform.name }
    #expect(own.map { $0["id"] as? String } == [id])
    #expect(own.first?["tags"] as? [String] == ["username:bob"])

    let text = "From alice: to \(dialect.format)"
    let sent = try await backend.notify(text, dialect, tags: ["username:bob", "from:alice"])
    #expect(sent.status == 201 && sent.body.isEmpty, "\(sent.status) \(sent.body)")
    let details = try await AzureSettings.outcome(of: try sent.id(), backend.door)
    #expect(details.contains("<State>Completed</State>") && details.contains("<Name>Success</Name><Count>1</Count>"))
    let arrived = try await deployment.arrivals(
      dialect.platform.name, AzureSettings.device("tutorial", dialect.platform))
    #expect(arrived.count == 1)
    #expect("\(arrived)".contains(text), "\(arrived)")

    let removed = try await backend.door.send("DELETE", "/registrations/\(id)", headers: [("If-Match", "*")])
    #expect(removed.status == 200)
    #expect(try await api.get("/api/registrations/\(id)", user: "operator").status == 404)
  }

  /// A front end that listens with TLS. Returns the connection string.
  private static func secureFrontEnd(
    _ certificates: TestCertificates, _ deployment: Deployment
  ) async throws -> String {
    let files = try certificates.write(to: deployment.directory.path)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: files.key)
    let process = try deployment.startFrontEndProcess([
      "FANFARE_API_TLS_CERTIFICATE_FILE": files.certificate, "FANFARE_API_TLS_KEY_FILE": files.key,
    ])
    let addresses = try await process.addresses(of: "api", "operations")
    let operations = Caller(base: "http://" + addresses[1])
    try await eventually("the front end with TLS to be ready") { try await operations.get("/readyz").status == 200 }
    // Python's verification wants a name.
    let port = try #require(addresses[0].split(separator: ":").last)
    return AzureDoor(Caller(base: "http://localhost:\(port)")).connectionString(scheme: "sb")
  }

  /// Nothing was lost, and the topics agree with the ledger.
  private static func audit(_ deployment: Deployment) async throws {
    try await eventually("everything to settle") {
      let (status, output, errors) = try await deployment.run(["audit", "--json"])
      let report = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
      #expect(status == 0, "\(errors)")
      return report["accepted"] as? Int == report["settled"] as? Int && report["lost"] as? Int == 0
    }
  }
}
