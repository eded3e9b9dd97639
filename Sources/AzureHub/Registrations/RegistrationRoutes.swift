import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// The media types of Atom as Azure writes them.
enum AtomType {
  static let entry = "application/atom+xml;type=entry;charset=utf-8"
  static let feed = "application/atom+xml; type=feed; charset=utf-8"
}

/// Registrations as entries and feeds of Atom.
struct RegistrationRoutes: Sendable {
  private static let unknown = Refusal(.notFound, "The registration does not exist.")

  let operations: FrontEndOperations

  init(_ operations: FrontEndOperations) { self.operations = operations }

  var routes: [AzureRoute] {
    [
      AzureRoute(.post, "registrationids", .listen) { request, _ in
        // A trusted caller may bring any id, so nothing is stored until it is used.
        AzureAnswer.empty(.created, location: request.location("registrationids/\(RegistrationID.random())"))
      },
      AzureRoute(.post, "registrations", .listen) { request, caller in
        let id = RegistrationID.random()
        return try await write(id.description, id, request, by: caller)
      },
      AzureRoute(.put, "registrations/{id}", .listen) { request, caller in
        let id = RegistrationID(azure: request.parameters[0])
        return try await unlessChanged(request) {
          try await write(
            request.parameters[0], id, request, if: IfMatch(request.header(.ifMatch))?.condition, by: caller)
        }
      },
      AzureRoute(.get, "registrations/{id}", .listen) { request, caller in
        let stored = try await find(request, by: caller)
        return answer(RegistrationEntry(stored, id: request.parameters[0], isOlder: request.isOlder), to: request)
      },
      AzureRoute(.delete, "registrations/{id}", .listen) { request, caller in
        let stored: Registration
        do { stored = try await find(request, by: caller) } catch let refusal as Refusal where refusal == Self.unknown {
          let id = RegistrationID(azure: request.parameters[0])
          // A client that removes all registrations of a list has removed the installation before its template.
          guard try await operations.inquiry.removedTogether(id, hub: caller.hubName) else { throw refusal }
          return AzureAnswer.empty(.ok)
        }
        return try await unlessChanged(request) {
          try await operations.remove(
            stored, if: IfMatch(request.header(.ifMatch))?.condition, by: caller, request.original)
          return AzureAnswer.empty(.ok)
        }
      },
      AzureRoute(.get, "registrations", .listen) { request, caller in
        if request.value("$filter") == nil, !SharedAccessRight.manage.isGranted(to: caller) {
          throw AzureAnswer.lacksManage
        }
        return try await list(RegistrationListRequest(of: request), request, by: caller)
      },
      AzureRoute(.get, "tags/{tag}/registrations", .manage) { request, caller in
        try await list(RegistrationListRequest(of: request, tag: request.parameters[0]), request, by: caller)
      },
    ]
  }

  private func find(_ request: AzureRequest, by caller: Caller) async throws -> Registration {
    let id = RegistrationID(azure: request.parameters[0])
    guard let stored = try await operations.registry.registration(id, hub: caller.hubName) else { throw Self.unknown }
    return stored
  }

  /// Creates or replaces a registration under an id that the client calls `name`.
  private func write(
    _ name: String, _ id: RegistrationID, _ request: AzureRequest, if condition: RegistrationCondition? = nil,
    by caller: Caller
  ) async throws -> Answer {
    let description = try RegistrationDescription(reading: try await request.body(upTo: operations.maximumBodySize))
    let stored = try await operations.complete(
      description.request(id: id, hub: caller.hubName), if: condition, by: caller)
    let entry = RegistrationEntry(stored, id: name, isOlder: request.isOlder)
    var response = answer(entry, to: request)
    response.headers[.contentLocation] = request.location(ofRegistration: name)
    return response
  }

  private func answer(_ entry: RegistrationEntry, to request: AzureRequest) -> Answer {
    var response = AzureAnswer.document(
      entry.document(link: request.location(ofRegistration:)), type: AtomType.entry)
    response.headers[.eTag] = "W/\"\(entry.tag)\""
    return response
  }

  /// Answers 412 if the condition of the change does not hold.
  private func unlessChanged(
    _ request: AzureRequest, _ change: () async throws -> Answer
  ) async throws -> Answer {
    do { return try await change() } catch let error as RegistryError where error.code == .changed {
      let status = HTTPResponse.Status.preconditionFailed
      return AzureAnswer.document(
        AzureAnswer.error(
          status, "The registration has changed: If-Match does not hold.",
          id: AzureAnswer.trackingID(of: request.original), at: operations.clock.now()),
        status: status)
    }
  }

  private func list(
    _ listing: RegistrationListRequest, _ request: AzureRequest, by caller: Caller
  ) async throws -> Answer {
    let page = try await listing.page(of: operations.registry, hub: caller.hubName)
    let entries = page.rows.map { RegistrationEntry($0, isOlder: request.isOlder) }
    var feed: [UInt8] = []
    feed.appendFeed(
      id: request.location(ofRegistration: ""), title: "Registrations", updated: operations.clock.now()
    ) { feed in
      for entry in entries { entry.append(to: &feed, link: request.location(ofRegistration:)) }
    }
    var response = AzureAnswer.document(feed, type: AtomType.feed)
    if let next = page.next { response.headers[.continuationToken] = next }
    return response
  }
}

extension RegistrationDescription {
  /// Reads the body of a request.
  init(reading body: ArraySlice<UInt8>) throws(Refusal) {
    let tree: XMLTree
    do throws(XMLError) { tree = try XMLTree(body) } catch { throw Refusal(.malformedBody, error.description) }
    do throws(InvalidDescription) { self = try Self(tree) } catch {
      throw Refusal(.invalidField, error.description)
    }
  }
}

extension AzureRequest {
  /// Whether the client asks for a version of the protocol that has no FcmV1.
  var isOlder: Bool { version < "2020-06" }

  /// The URL of a registration; with an empty id that of the list.
  func location(ofRegistration id: String) -> String {
    location(id.isEmpty ? "registrations" : "registrations/\(id.percentEncoded)")
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; these literals are valid.
  static let continuationToken = HTTPField.Name("x-ms-continuationtoken")!
}
