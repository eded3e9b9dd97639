import FanfareCore
import Synchronization

/// Finds the templates of hubs that sends name.
///
/// The newest version of a template, or that there is none, is remembered for `lifetime`: a change at another front end
/// counts here after that time, a change here at once.
final class HubTemplates: Sendable {
  static let lifetime: Duration = .seconds(1)
  private static let capacity = 10_000

  private struct Key: Hashable {
    let hub: HubName
    let name: String
    let version: Int?
  }

  let store: any TemplateStore
  private let clock: any WallClock
  private struct State {
    /// The versions; nil for a template that the hub does not have.
    var known = ExpiringCache<Key, Int?, UnixTime>(capacity: HubTemplates.capacity)
    /// How often a template was changed here.
    var changes = 0
  }

  private let state = Mutex(State())

  init(store: any TemplateStore, clock: any WallClock) { (self.store, self.clock) = (store, clock) }

  /// The content with the version of the hub's template that it names. Unchanged if it names none, or one that the hub
  /// does not have: then the devices' own templates of that name are meant.
  ///
  /// Throws `.impossible` if it names a version that does not exist or is no longer usable, and the error of the store.
  func resolve(_ content: TemplateContent, in hub: HubName) async throws -> TemplateContent {
    if let known = try known(content, in: hub) { return known }
    guard let key = try Self.key(of: content, in: hub) else { return content }
    let (knownAt, changes) = (clock.now(), state.withLock(\.changes))
    let template = try await store.template(key.name, version: key.version, hub: hub)
    let version = template.flatMap { $0.isUsable(at: knownAt) ? $0.version : nil }
    state.withLock { state in
      // The answer may be older than a change that was made meanwhile.
      guard state.changes == changes else { return }
      state.known.insert(version, for: key, from: knownAt, to: knownAt + Self.lifetime)
    }
    return try Self.content(content, version)
  }

  /// What `resolve` returns without asking the store; nil if it must.
  func known(_ content: TemplateContent, in hub: HubName) throws(Refusal) -> TemplateContent? {
    guard let key = try Self.key(of: content, in: hub) else { return content }
    let now = clock.now()
    guard let version = state.withLock({ $0.known.value(key, at: now) }) else { return nil }
    return try Self.content(content, version)
  }

  /// Forgets everything, since a template was changed.
  func forget() {
    state.withLock { state in
      state.changes += 1
      state.known.removeAll()
    }
  }

  /// Nil if the content cannot name a template of a hub.
  private static func key(of content: TemplateContent, in hub: HubName) throws(Refusal) -> Key? {
    guard let name = content.name else {
      guard content.version == nil else { throw Refusal(.invalidField, "template.version needs a name") }
      return nil
    }
    guard HubTemplate.isValid(name: name) else {
      guard content.version == nil else { throw unknownVersion }
      return nil
    }
    return Key(hub: hub, name: name, version: content.version)
  }

  private static func content(_ content: TemplateContent, _ version: Int?) throws(Refusal) -> TemplateContent {
    guard let version else {
      guard content.version == nil else { throw unknownVersion }
      return content
    }
    return TemplateContent(name: content.name, version: version, properties: content.properties)
  }

  private static let unknownVersion = Refusal(
    .impossible, "template.version: the hub has no such version of the template, or replaced it over 30 days ago")
}

/// The templates of a deployment whose registry keeps none.
struct NoTemplates: TemplateStore {
  private static let error = RegistryError(.unavailable, "the registry keeps no templates")

  func store(
    template name: String, defaultLocale: String, variants: [String: Content], hub: HubName, at now: UnixTime
  ) async throws -> HubTemplate { throw Self.error }

  func template(_ name: String, version: Int?, hub: HubName) async throws -> HubTemplate? { nil }

  func templates(after name: String?, hub: HubName, limit: Int) async throws -> [HubTemplate] { [] }

  func remove(template name: String, hub: HubName, at now: UnixTime) async throws {
    throw RegistryError(.notFound, "there is no such template")
  }
}
