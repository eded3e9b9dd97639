import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// The description of hubs.
///
/// It shows no keys and no secrets. Credentials are changed where the configuration allows it.
struct HubRoutes: Sendable {
  let operations: FrontEndOperations
  let credentials: [HubName: any HubCredentialStore]
  /// The hubs whose credentials may be changed.
  let changeable: Set<HubName>

  var routes: [AzureRoute] {
    [
      AzureRoute(.get, "", .manage) { request, caller in await describe(caller.hubName, request) },
      AzureRoute(.put, "", .manage) { try await update($0, by: $1) },
      AzureRoute(.delete, "", .manage) { _, _ in throw Self.fixed },
    ]
  }

  private func describe(_ hub: HubName, _ request: AzureRequest) async -> Answer {
    let description = HubDescription(
      title: request.hubText, url: request.root, now: operations.clock.now(),
      credentials: await credentials[hub]?.identities() ?? [])
    return AzureAnswer.document(description.document, type: AtomType.entry)
  }

  private func update(_ request: AzureRequest, by caller: Caller) async throws -> Answer {
    // Without it, Azure makes a new hub.
    guard request.header(.ifMatch) != nil else {
      throw Refusal(.conflict, "SubCode=40900. The hub exists; an update has the header If-Match.")
    }
    guard changeable.contains(caller.hubName), let store = credentials[caller.hubName] else { throw Self.fixed }
    let update = try HubUpdate(try await request.body(upTo: operations.maximumBodySize))
    let changed = try await store.replace(update.credentials)
    if !changed.isEmpty { operations.recordCredentials(of: changed, by: caller, request.original) }
    return await describe(caller.hubName, request)
  }

  /// Why a hub cannot be made, changed or deleted.
  static let fixed = Refusal(
    .impossible,
    "Hubs and their credentials are in the configuration of this server: make, change or delete them there. Changed "
      + "files of keys are read without a restart.")
}

/// `NotificationHubDescription` in an entry of Atom.
struct HubDescription: Sendable {
  /// Azure's way to say that registrations do not expire.
  static let unlimited = "P10675199DT2H48M5.4775807S"

  /// The name by which the client asked.
  let title: String
  let url: String
  let now: UnixTime
  /// The public properties of the hub's credentials.
  var credentials: [HubCredential] = []

  var document: [UInt8] {
    var document: [UInt8] = []
    append(to: &document)
    return document
  }

  private func append(to document: inout [UInt8]) {
    document.appendEntry(id: url, title: title, published: now, updated: now) { content in
      content.appendElement("NotificationHubDescription", attributes: XMLNamespace.ofDescriptions) {
        append("ApnsCredential", ["Endpoint", "AppName", "AppId", "KeyId"], to: &$0)
        $0.appendElement("RegistrationTtl", Self.unlimited)
        append("WnsCredential", ["PackageSid", "WindowsLiveEndpoint"], to: &$0)
        $0.appendElement("AuthorizationRules", "")
        append("FcmV1Credential", ["ProjectId", "ClientEmail"], to: &$0)
      }
    }
  }

  private func append(_ name: String, _ properties: [String], to document: inout [UInt8]) {
    guard let shown = credentials.first(where: { $0.name == name })?.properties(properties), !shown.isEmpty else {
      return
    }
    document.appendElement(name) { credential in
      credential.appendElement("Properties") { list in
        for property in shown {
          list.appendElement("Property") {
            $0.appendElement("Name", property.name)
            $0.appendElement("Value", property.value)
          }
        }
      }
    }
  }

  /// The feed of several hubs below `root`.
  static func feed(_ hubs: [HubName], at root: String, _ now: UnixTime) -> [UInt8] {
    var document: [UInt8] = []
    document.appendFeed(
      id: "\(root)/$Resources/NotificationHubs", title: "Publicly Listed Services", updated: now
    ) { feed in
      for hub in hubs { HubDescription(title: hub.rawValue, url: "\(root)/\(hub)", now: now).append(to: &feed) }
    }
    return document
  }
}
