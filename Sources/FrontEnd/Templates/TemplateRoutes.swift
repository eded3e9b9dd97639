import FanfareCore
import HTTPServer
import HTTPTypes
import Operations

/// The routes for the templates of a hub: store, list, read, remove, and preview for a device.
struct TemplateRoutes: Sendable {
  private static let maximumLimit = 100
  private static let defaultLimit = 50

  let access: AccessControl
  let templates: HubTemplates
  let registry: any DeviceRegistry
  let clock: any WallClock
  let maximumBodySize: Int

  var routes: [Route] {
    // Those who change templates must see them.
    let readers = [Scope.readAll, .operate]
    return [
      Route(.get, "api/templates", readers) { try await list($0, by: $1) },
      Route(.get, "api/templates/{name}", readers) { exchange, caller in
        let query = try Query(of: exchange)
        try query.requireOnly(["version"])
        let template = try await template(exchange, version: try query.version(), in: caller.hub.name)
        return .json(template.json, isPrivate: true)
      },
      Route(.put, "api/templates/{name}", [.operate]) { try await store($0, by: $1) },
      Route(.delete, "api/templates/{name}", [.operate]) { exchange, caller in
        guard let name = exchange.templateName else { throw Self.unknown }
        try await templates.store.remove(template: name, hub: caller.hub.name, at: clock.now())
        templates.forget()
        access.security.record(.templateRemoved, for: exchange, by: caller)
        return Answer(status: .noContent)
      },
      Route(.post, "api/templates/{name}/preview", readers) { try await preview($0, by: $1) },
    ]
  }

  private func list(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    let query = try Query(of: exchange)
    try query.requireOnly(["limit", "cursor"])
    let limit = try query.limit(upTo: Self.maximumLimit) ?? Self.defaultLimit
    let last = try query.cursor { HubTemplate.isValid(name: $0) ? $0 : nil }
    // One more shows whether there is another page.
    let found = try await templates.store.templates(after: last, hub: caller.hub.name, limit: limit + 1)
    let page = found.prefix(limit)
    let document = JSONWriter.object(capacity: 64 + page.count * 192) {
      $0.array("templates", page) { json, template in
        json.object {
          template.writeHead(to: &$0)
          $0.member("locales", template.variants.keys.sorted())
        }
      }
      $0.member("next", found.count > limit ? page.last?.name : nil)
    }
    return .json(document, isPrivate: true)
  }

  private func store(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    try MediaType.json.require(of: exchange)
    guard let name = exchange.templateName else {
      throw Refusal(.invalidParameter, "the template's name must be \(HubTemplate.nameRule)")
    }
    let body = try TemplateBody(try await exchange.bytes(upTo: maximumBodySize))
    let template = try await templates.store.store(
      template: name, defaultLocale: body.defaultLocale, variants: body.variants, hub: caller.hub.name, at: clock.now())
    templates.forget()
    access.security.record(
      .templateStored, for: exchange, by: caller, details: ["template.version": "\(template.version)"])
    return .json(template.json, isPrivate: true)
  }

  private func preview(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    try MediaType.json.require(of: exchange)
    let body = try PreviewBody(try await exchange.bytes(upTo: maximumBodySize))
    let template = try await template(exchange, version: body.version, in: caller.hub.name)
    var (platforms, locale) = (body.platform.map { [$0] } ?? Platform.allCases, body.locale)
    var attributes: [String: String] = [:]
    if let id = body.registration {
      guard let registration = try await registry.registration(id, hub: caller.hub.name) else {
        throw Refusal(.impossible, "registration: there is no such registration")
      }
      platforms = [registration.platform]
      (locale, attributes) = (registration.profile?.locale, registration.profile?.attributes ?? [:])
    }
    let preview = try TemplatePreview(
      of: template, on: platforms, locale: locale,
      values: TemplateValues(properties: body.properties, attributes: attributes),
      given: Set(body.properties.keys).union(attributes.keys))
    return .json(preview.json(), isPrivate: true)
  }

  private func template(_ exchange: Exchange, version: Int?, in hub: HubName) async throws -> HubTemplate {
    guard let name = exchange.templateName,
      let template = try await templates.store.template(name, version: version, hub: hub)
    else { throw Self.unknown }
    return template
  }

  private static let unknown = Refusal(.notFound, "there is no such template")
}

/// A template rendered with some values for each platform.
struct TemplatePreview {
  private let template: HubTemplate
  private let locale: String
  private let contents: [(platform: Platform, content: Content)]
  private let missing: Set<String>

  /// `given` are the names of the values.
  init(
    of template: HubTemplate, on platforms: [Platform], locale: String?, values: TemplateValues, given: Set<String>
  ) throws {
    self.template = template
    self.locale = template.locale(for: locale)
    let compiled = try ContentTemplate(template.variants[self.locale] ?? Content())
    let covered = platforms.filter { compiled.coveredPlatforms.contains($0) }
    guard !covered.isEmpty else { throw Refusal(.impossible, "the template has nothing for this platform") }
    contents = try covered.map { platform in
      do throws(PushOutcome) { return (platform, try compiled.render(for: platform, values)) } catch {
        throw Refusal(.impossible, "the payload for \(platform) would be larger than \(platform) allows")
      }
    }
    missing = covered.reduce(into: Set<String>()) { $0.formUnion(compiled.names(on: $1)) }.subtracting(given)
  }

  func json() -> [UInt8] {
    JSONWriter.object(capacity: 1024) {
      $0.member("name", template.name)
      $0.member("version", template.version)
      $0.member("locale", locale)
      $0.object("content") { json in
        for (platform, content) in contents { json.object(named: platform.name) { content.writeMembers(to: &$0) } }
      }
      $0.member("missing", missing.sorted())
    }
  }
}

extension HubTemplate {
  fileprivate func writeHead(to json: inout JSONWriter) {
    json.member("name", name)
    json.member("version", version)
    json.member("createdAt", createdAt)
    json.member("defaultLocale", defaultLocale)
  }

  fileprivate var json: [UInt8] {
    JSONWriter.object(capacity: 4096) {
      writeHead(to: &$0)
      $0.object("variants") { json in
        for (locale, content) in variants.sorted(by: { $0.key < $1.key }) {
          json.object(named: locale) { content.writeMembers(to: &$0) }
        }
      }
    }
  }
}

extension Exchange {
  /// The name in the path; nil if no template can have it.
  fileprivate var templateName: String? {
    parameters["name"].flatMap { Query.decoded($0.utf8) }.flatMap { HubTemplate.isValid(name: $0) ? $0 : nil }
  }
}

extension Query {
  fileprivate func version() throws(Refusal) -> Int? {
    guard let text = try value(of: "version") else { return nil }
    guard let version = Int(text), (1...Int(Int32.max)).contains(version) else {
      throw Refusal(.invalidParameter, "version must be a whole number from 1 to \(Int32.max)")
    }
    return version
  }
}
