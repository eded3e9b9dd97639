/// A template that a device registered for itself.
package struct DeviceTemplate: Hashable, Sendable {
  /// The most characters of a template's name.
  package static let maximumNameLength = 200
  /// The rule for names as stated in error messages.
  package static let nameRule = "1 to \(maximumNameLength) characters and no control characters"

  package static func isName(_ text: String) -> Bool {
    (1...maximumNameLength).contains(text.unicodeScalars.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }

  /// Empty if the device gave no name.
  package let name: String
  /// The payload for the device's platform.
  package let body: String
  /// Header fields of the push, with names in lower case.
  package let headers: [String: String]

  package init(name: String = "", body: String, headers: [String: String] = [:]) {
    (self.name, self.body, self.headers) = (name, body, headers)
  }

  /// Compiles the template for a platform.
  package func compiled(for platform: Platform) throws(TemplateError) -> ContentTemplate {
    let payload = NativePayload(body, as: platform.vocabulary.nativeForm)
    return try ContentTemplate(Content(native: NativePayloads(platform, payload), headers: headers))
  }

  /// Throws if the template has header fields of another platform, cannot be compiled, or has a part without
  /// expressions that the push service would refuse.
  package func check(on platform: Platform) throws(Fault) {
    for name in headers.keys.sorted() where PushHeader.platform(of: name) != platform { throw .header(name) }
    let template: ContentTemplate
    do throws(TemplateError) { template = try compiled(for: platform) } catch { throw .template(error) }
    do throws(ContentFault) { try template.check() } catch { throw .content(error) }
  }

  /// The reason why no push could be made from a template. The fields are those of a send's native payload.
  package enum Fault: Error, CustomStringConvertible {
    /// This header field belongs to another platform.
    case header(String)
    case template(TemplateError)
    case content(ContentFault)

    package var description: String {
      switch self {
      case .header(let name): "headers.\(name): does not belong to this platform"
      case .template(let error): "\(error)"
      case .content(let fault): "\(fault)"
      }
    }
  }
}

/// An app's report about its device besides handle and tags, for templates and local times.
package struct DeviceProfile: Hashable, Sendable {
  /// The most attributes of a device.
  package static let maximumAttributes = 50
  /// The most bytes of the profile as JSON.
  package static let maximumLength = 20_480

  /// Set in a registration that exists for its template only: it receives no other sends.
  package var template: DeviceTemplate?
  /// A language tag such as `de-AT` (RFC 5646).
  package var locale: String?
  /// A name of the IANA time zone database such as `Europe/Vienna`.
  package var timeZone: String?
  /// Values that templates may insert, by names in lower case.
  package var attributes: [String: String]
  /// The name of the secondary tile on Windows whose channel the registration holds.
  package var tile: String?
  /// The form in which a client of Azure's protocol gave the registration, for its answers alone; see `AzureHub`.
  package var azure: [String: String]

  package init(
    template: DeviceTemplate? = nil, locale: String? = nil, timeZone: String? = nil, attributes: [String: String] = [:],
    tile: String? = nil, azure: [String: String] = [:]
  ) {
    (self.template, self.locale, self.timeZone, self.attributes) = (template, locale, timeZone, attributes)
    (self.tile, self.azure) = (tile, azure)
  }

  /// Whether there is nothing to store.
  package var isEmpty: Bool {
    template == nil && locale == nil && timeZone == nil && attributes.isEmpty && tile == nil && azure.isEmpty
  }
}
