import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// The states and outcomes of sends.
struct TelemetryRoutes: Sendable {
  /// How long an id without a report counts as that of a send whose report is not written yet: the ledger lags behind
  /// the topics.
  static let lag: Duration = .seconds(600)
  /// The most reports that are read at a time.
  private static let readAtOnce = 8
  private static let errorsFile = "errors.xml"
  /// The most devices of Firebase whose kinds are looked up.
  private static let maximumKinds = 200

  let operations: FrontEndOperations

  var routes: [AzureRoute] {
    [
      AzureRoute(.get, "messages/{id}", .send) { try await details($0, by: $1) },
      AzureRoute(.get, "messages/$batch/{id}", .send) { try await details($0, by: $1) },
      AzureRoute(.get, "schedulednotifications/{id}", .send) { try await details($0, by: $1) },
      AzureRoute(signed: .get, "messages/{id}/\(Self.errorsFile)") { try await errors($0) },
      AzureRoute(signed: .get, "messages/$batch/{id}/\(Self.errorsFile)") { try await errors($0) },
    ]
  }

  private func details(_ request: AzureRequest, by caller: Caller) async throws -> Answer {
    guard let id = request.parameters.first.flatMap({ NotificationID($0) }) else { throw Self.unknown }
    let reports = try await reports(of: id, hub: caller.hubName)
    let now = operations.clock.now()
    // A send that was accepted just now has no report, and must be found nevertheless.
    let mayCome = id.acceptedAt.map { now - $0 < Self.lag && $0 - now < Self.lag } ?? false
    guard mayCome || reports.contains(where: { $0 != nil }) else { throw Self.unknown }
    let path = id.count == nil ? "messages/\(id)" : "messages/$batch/\(id)"
    var details = NotificationDetails(
      id: id, location: request.location(path), reports: reports, isOlder: request.isOlder,
      gcmDevices: request.isOlder ? nil : try await gcmDevices(in: reports, hub: caller.hubName))
    if details.hasErrors {
      details.errorsURL = SignedURL.url("\(path)/\(Self.errorsFile)", request, caller.hubName, operations)
    }
    return AzureAnswer.document(details.document)
  }

  private func errors(_ request: AzureRequest) async throws -> Answer {
    guard let hub = request.hub, let id = request.parameters.first.flatMap({ NotificationID($0) }) else {
      throw Self.unknown
    }
    let reports = try await reports(of: id, hub: hub)
    return AzureAnswer.document(NotificationDetails(id: id, location: "", reports: reports).errors)
  }

  private func reports(of id: NotificationID, hub: HubName) async throws -> [SendReport?] {
    let sends = id.sends
    var reports = [SendReport?](repeating: nil, count: sends.count)
    try await withThrowingTaskGroup(of: (Int, SendReport?).self) { group in
      var next = 0
      func readNext() {
        guard next < sends.count else { return }
        let index = next
        next += 1
        group.addTask { (index, try await operations.report(of: sends[index], hub: hub)) }
      }
      for _ in 0..<Self.readAtOnce { readNext() }
      while let (index, report) = try await group.next() {
        reports[index] = report
        readNext()
      }
    }
    return reports
  }

  /// The devices of the kind Gcm; nil if there are too many, or none is registered. One that is not registered any more
  /// counts as Gcm if all others are.
  private func gcmDevices(in reports: [SendReport?], hub: HubName) async throws -> Set<RegistrationID>? {
    let all = Set(reports.flatMap { $0?.devices ?? [] }.filter { $0.platform == .fcm }.map(\.registration))
    guard all.count <= Self.maximumKinds else { return nil }
    var kinds: [RegistrationID: PushServiceName] = [:]
    for id in all {
      guard let row = try await operations.registry.registration(id, hub: hub) else { continue }
      kinds[id] = PushServiceName(row.platform, row.profile?.azure ?? [:], isOlder: false)
    }
    guard !kinds.isEmpty else { return nil }
    if kinds.values.allSatisfy({ $0 == .gcm }) { return all }
    return Set(kinds.filter { $0.value == .gcm }.keys)
  }

  private static let unknown = Refusal(.notFound, "The notification does not exist.")
}
