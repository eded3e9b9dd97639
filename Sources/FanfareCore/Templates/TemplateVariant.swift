/// A template as it is rendered for some devices: its texts in one language, and the devices' own values.
///
/// Devices with the same texts and values share one variant, so that a send is rendered once for all of them. Variants
/// are compared by identity.
package final class TemplateVariant: Hashable, Sendable {
  private let template: ContentTemplate
  private let attributes: [String: String]

  package init(_ template: ContentTemplate, attributes: [String: String] = [:]) {
    (self.template, self.attributes) = (template, attributes)
  }

  /// Whether the template has content for the platform.
  package func covers(_ platform: Platform) -> Bool { template.coveredPlatforms.contains(platform) }

  /// The content of a send to these devices. Throws the outcome that every push of it would have.
  package func content(for platform: Platform, properties: [String: String]) throws(PushOutcome) -> Content {
    try template.render(for: platform, TemplateValues(properties: properties, attributes: attributes))
  }

  package static func == (left: TemplateVariant, right: TemplateVariant) -> Bool { left === right }

  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
