import FanfareCore
import FrontEnd
import HTTPTypes
import HummingbirdCore

/// The description of hubs.
///
/// It shows no credentials and no keys. Credentials are changed where the configuration allows it.
struct HubRoutes: Sendable {
  let operations: FrontEndOperations
  /// Those of the hubs whose credentials may be changed.
  let credentials: [HubName: any HubCredentialStore]

  var routes: [AzureRoute] {
    [
      AzureRoute(.get, "", .manage) { request, caller in describe(caller.hubName, request) },
      AzureRoute(.put, "", .manage) { try await update($0, by: $1) },
      AzureRoute(.delete, "", .manage) { _, _ in throw Self.fixed },
    ]
  }

  private func describe(_ hub: HubName, _ request: AzureRequest) -> Response {
    let description = HubDescription(hub: hub, url: request.root, now: operations.clock.now())
    return AzureAnswer.document(description.document, type: AtomType.entry)
  }

  private func update(_ request: AzureRequest, by caller: Caller) async throws -> Response {
    guard let store = credentials[caller.hubName] else { throw Self.fixed }
    // Without it, Azure makes a new hub.
    guard request.header(.ifMatch) != nil else {
      throw Refusal(.conflict, "The hub exists; an update has the header If-Match.")
    }
    let update = try HubUpdate(try await request.body(upTo: operations.maximumBodySize))
    let changed = try await store.replace(update.credentials)
    if !changed.isEmpty { operations.recordCredentials(of: changed, by: caller, request.original) }
    return describe(caller.hubName, request)
  }

  /// Why a hub cannot be made, changed or deleted.
  private static let fixed = Refusal(
    .impossible,
    "Hubs and their credentials are in the configuration of this server: make, change or delete them there. Changed "
      + "files of keys are read without a restart.")
}

/// `NotificationHubDescription` in an entry of Atom.
struct HubDescription: Sendable {
  /// Azure's way to say that registrations do not expire.
  static let unlimited = "P10675199DT2H48M5.4775807S"

  let hub: HubName
  let url: String
  let now: UnixTime

  var document: [UInt8] {
    var document: [UInt8] = []
    append(to: &document)
    return document
  }

  private func append(to document: inout [UInt8]) {
    document.appendEntry(id: url, title: hub.rawValue, published: now, updated: now) { content in
      content.appendElement("NotificationHubDescription", attributes: XMLNamespace.ofDescriptions) {
        $0.appendElement("RegistrationTtl", Self.unlimited)
        $0.appendElement("AuthorizationRules", "")
      }
    }
  }

  /// The feed of several hubs below `root`.
  static func feed(_ hubs: [HubName], at root: String, _ now: UnixTime) -> [UInt8] {
    var document: [UInt8] = []
    document.appendFeed(
      id: "\(root)/$Resources/NotificationHubs", title: "Publicly Listed Services", updated: now
    ) { feed in
      for hub in hubs { HubDescription(hub: hub, url: "\(root)/\(hub)", now: now).append(to: &feed) }
    }
    return document
  }
}
