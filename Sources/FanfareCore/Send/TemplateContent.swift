/// The content of a send that is rendered from templates.
package struct TemplateContent: Hashable, Sendable {
  /// The most properties of a send.
  package static let maximumProperties = 100

  /// With a version, a template of the hub; without one, the devices' own templates of the name, or all with nil.
  package let name: String?
  package let version: Int?
  /// The values to insert, by names in lower case.
  package let properties: [String: String]

  package init(name: String? = nil, version: Int? = nil, properties: [String: String] = [:]) {
    (self.name, self.version, self.properties) = (name, version, properties)
  }

  /// Whether the text may be a property's name.
  package static func isPropertyName(_ text: String) -> Bool { TemplateExpression.isName(text) }

  /// The templates that the send's devices are rendered from.
  package var source: TemplateSource {
    if let name, let version { .hub(name: name, version: version) } else { .devices(name: name) }
  }
}

/// The templates that an audience is rendered from.
package enum TemplateSource: Hashable, Sendable {
  /// The templates of the devices themselves: the audience is the registrations that have one, of the name if given.
  case devices(name: String?)
  /// A version of a template of the hub: the audience is the registrations without a template of their own.
  case hub(name: String, version: Int)
}

extension AudienceQuery {
  /// The devices of a send.
  package init(_ send: SendRequest) {
    self.init(
      hub: send.hub, audience: send.audience, platforms: send.coveredPlatforms, template: send.content.template?.source)
  }
}

extension SendRequest {
  /// The send with the content for the devices of a variant; the send itself without one. Throws the outcome that every
  /// push of it would have.
  package func rendered(from variant: TemplateVariant?, for platform: Platform) throws(PushOutcome) -> SendRequest {
    guard let variant, let template = content.template else { return self }
    let content = try variant.content(for: platform, properties: template.properties)
    return with { $0.content = content }
  }
}
