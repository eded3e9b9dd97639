/// A message that every platform can show in its own way.
package struct Message: Hashable, Sendable {
  /// The headline.
  package let title: String?
  /// The text.
  package let body: String?
  /// Values for the app itself, in the caller's order of keys made canonical (sorted).
  package let data: [String: String]
  /// The number on the app's icon; 0 clears it.
  package let badge: Int?
  /// A sound's name, or `default`.
  package let sound: String?

  package init(
    title: String? = nil, body: String? = nil, data: [String: String] = [:], badge: Int? = nil, sound: String? = nil
  ) {
    self.title = title
    self.body = body
    self.data = data
    self.badge = badge
    self.sound = sound
  }

  /// Whether it shows nothing and carries nothing.
  package var isEmpty: Bool { title == nil && body == nil && data.isEmpty && badge == nil && sound == nil }
}
