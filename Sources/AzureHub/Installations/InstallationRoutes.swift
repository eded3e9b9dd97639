import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// Installations as JSON.
struct InstallationRoutes: Sendable {
  /// The most attempts to apply a patch while other callers change the installation.
  private static let attempts = 5
  private static let unknown = Refusal(.notFound, "Installation not found.")

  let operations: FrontEndOperations

  var routes: [AzureRoute] {
    [
      AzureRoute(.put, "installations/{id}", .listen) { try await write($0, by: $1) },
      AzureRoute(.patch, "installations/{id}", .listen) { try await patch($0, by: $1) },
      AzureRoute(.get, "installations/{id}", .listen) { request, caller in
        let (device, document) = try await read(request, by: caller)
        return AzureAnswer.document(document.json(seenAt: device.seenAt), type: AzureAnswer.json)
      },
      AzureRoute(.delete, "installations/{id}", .listen) { request, caller in
        for row in try await rows(request, of: caller) {
          do { try await operations.remove(row, by: caller, request.original) } catch let error as RegistryError
            where error.code == .notFound
          {
            // Templates and tiles go with the device.
          }
        }
        return Answer(status: .noContent)
      },
    ]
  }

  private func write(_ request: AzureRequest, by caller: Caller) async throws -> Answer {
    let body = try await request.body(upTo: operations.maximumBodySize)
    let installation = try describing { () throws(InvalidDescription) in
      try InstallationDocument(body, id: request.parameters[0])
        .request(in: caller.hubName, at: operations.clock.now())
    }
    _ = try await operations.install(installation, by: caller)
    return written(request)
  }

  private func patch(_ request: AzureRequest, by caller: Caller) async throws -> Answer {
    let body = try await request.body(upTo: operations.maximumBodySize)
    let patch = try describing { () throws(InvalidDescription) in try AzurePatch(body) }
    for attempt in 1... {
      let (device, stored) = try await read(request, by: caller)
      let changed = try describing { () throws(InvalidDescription) in
        var document = stored
        try patch.apply(to: &document)
        return try document.request(in: caller.hubName, at: operations.clock.now())
      }
      do {
        _ = try await operations.revise(device, by: changed, of: caller)
        break
      } catch let error as RegistryError where error.code == .conflict && attempt < Self.attempts {
        continue
      }
    }
    return written(request)
  }

  private func written(_ request: AzureRequest) -> Answer {
    var response = AzureAnswer.empty(.ok)
    response.headers[.contentLocation] = request.location("installations/\(request.parameters[0].percentEncoded)")
    return response
  }

  private func rows(_ request: AzureRequest, of caller: Caller) async throws -> [Registration] {
    try await operations.registry.registrations(ofInstallation: request.parameters[0], hub: caller.hubName)
  }

  /// The installation's own registration, and the description of it with its templates. Throws `.notFound`.
  private func read(
    _ request: AzureRequest, by caller: Caller
  ) async throws -> (device: Registration, document: InstallationDocument) {
    let rows = try await rows(request, of: caller)
    // After its end it is removed soon; see `RegistrationExpiry`.
    guard let device = rows.first, !device.isPart, device.validUntil.map({ $0 > operations.clock.now() }) ?? true else {
      throw Self.unknown
    }
    let document = InstallationDocument(
      id: request.parameters[0], device: device, parts: Array(rows.dropFirst()), isOlder: request.isOlder)
    return (device, document)
  }

  private func describing<Value>(_ check: () throws(InvalidDescription) -> Value) throws(Refusal) -> Value {
    do throws(InvalidDescription) { return try check() } catch {
      throw Refusal(.invalidField, error.description)
    }
  }
}
