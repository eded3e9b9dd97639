import FanfareCore

/// A device's template as Azure's clients write it: the body, header fields of the service, and for Apple an expiry.
struct AzureTemplate: Hashable, Sendable {
  var body: String
  /// By names in lower case, with expiry and priority among them.
  private(set) var headers: [String: String] = [:]
  /// The names among `apns-expiration` and `apns-priority` that were given as header fields, not as elements.
  private var asHeaders: Set<String> = []
  /// The expiry as it was given.
  private var expiryText: String?
  /// The names of the header fields as they were given, by the names in lower case.
  private var names: [String: String] = [:]

  private static let expiration = "apns-expiration"
  private static let priority = "apns-priority"
  /// The most bytes of an expiry that is kept as given.
  private static let maximumExpiry = 128

  init(body: String) { self.body = body }

  /// `form` is what `form` was when the template was stored.
  init(_ template: DeviceTemplate, form: [String: String]) {
    (body, headers, expiryText) = (template.body, template.headers, form["expiry"])
    asHeaders = Set((form["asHeaders"] ?? "").split(separator: ",").map(String.init))
    for name in (form["headers"] ?? "").split(separator: ",") { names[name.lowercased()] = String(name) }
  }

  /// The form in which the client gave it, as far as the template does not show it; for `DeviceProfile.azure`.
  var form: [String: String] {
    var form: [String: String] = [:]
    form["expiry"] = expiryText
    if !asHeaders.isEmpty { form["asHeaders"] = asHeaders.sorted().joined(separator: ",") }
    if !names.isEmpty { form["headers"] = names.values.sorted().joined(separator: ",") }
    return form
  }

  /// Sets the priority of a registration for Apple, which is an element of its own.
  mutating func setPriority(_ value: String, on platform: Platform) throws(InvalidDescription) {
    try set(Self.priority, to: value, on: platform)
    asHeaders.remove(Self.priority)
  }

  /// Sets a header field; its name may be in any letter case.
  mutating func set(_ given: String, to value: String, on platform: Platform) throws(InvalidDescription) {
    let name = given.lowercased()
    guard PushHeader.platform(of: name) == platform else {
      let names = platform.vocabulary.headers.sorted().joined(separator: ", ")
      throw InvalidDescription(
        "a template's header must be one of \(names.isEmpty ? "none on this platform" : names)")
    }
    guard PushHeader.isSound(value) else {
      throw InvalidDescription("the header \(name) must be 1 to \(PushHeader.maximumLength) visible ASCII characters")
    }
    headers[name] = value
    names[name] = given == Self.usual[name] ?? name ? nil : given
    if name == Self.expiration { expiryText = nil }
    if name == Self.priority || name == Self.expiration { asHeaders.insert(name) }
  }

  mutating func removeHeaders() {
    headers = headers.filter { $0.key == Self.expiration && !asHeaders.contains($0.key) }
    (names, asHeaders) = ([:], [])
  }

  mutating func remove(header name: String) {
    let name = name.lowercased()
    (headers[name], names[name]) = (nil, nil)
    asHeaders.remove(name)
    if name == Self.expiration { expiryText = nil }
  }

  /// The expiry: an expression, a date, or seconds since 1970.
  mutating func setExpiry(_ text: String?, on platform: Platform, field: String) throws(InvalidDescription) {
    remove(header: Self.expiration)
    guard let text = text?.trimmingSpace, !text.isEmpty else { return }
    guard platform == .apns else { throw InvalidDescription("\(field) belongs to templates for Apple") }
    let isExpression = text.first.map("$.%#{".contains) ?? false
    if isExpression || Int64(text).map({ $0 >= 0 }) == true {
      try set(Self.expiration, to: text, on: platform)
      asHeaders.remove(Self.expiration)
    } else if let time = AzureTime.read(text) {
      headers[Self.expiration] = "\(max(time.seconds, 0))"
    } else {
      throw InvalidDescription("\(field) must be a date such as 2026-11-21T08:00:00Z, an expression or 0")
    }
    if text != expiry, text.utf8.count <= Self.maximumExpiry { expiryText = text }
  }

  /// The priority, unless it was given among the header fields.
  var priority: String? { asHeaders.contains(Self.priority) ? nil : headers[Self.priority] }

  /// The expiry as it was given, unless among the header fields. Of older templates a date, if it is no expression.
  var expiry: String? {
    if asHeaders.contains(Self.expiration) { return nil }
    if let expiryText { return expiryText }
    guard let value = headers[Self.expiration] else { return nil }
    guard let seconds = Int64(value), seconds > 0, seconds <= 253_402_300_799 else { return value }
    return UnixTime(milliseconds: seconds * 1000).description
  }

  /// The header fields that Azure's clients give besides the expiry, by the names that were given, sorted; those for an
  /// element of Apple's registrations without a priority of its own.
  func namedHeaders(isElement: Bool = false) -> [(name: String, value: String)] {
    let own: Set = isElement ? [Self.expiration, Self.priority] : [Self.expiration]
    return headers.filter { !own.contains($0.key) || asHeaders.contains($0.key) }.sorted { $0.key < $1.key }.map {
      (names[$0.key] ?? Self.usual[$0.key] ?? $0.key, $0.value)
    }
  }

  private static let usual = [
    "content-type": "Content-Type", "x-wns-cache-policy": "X-WNS-Cache-Policy", "x-wns-group": "X-WNS-Group",
    "x-wns-match": "X-WNS-Match", "x-wns-priority": "X-WNS-Priority", "x-wns-suppresspopup": "X-WNS-SuppressPopup",
    "x-wns-tag": "X-WNS-Tag", "x-wns-ttl": "X-WNS-TTL", "x-wns-type": "X-WNS-Type",
  ]

  /// The template if it can be compiled.
  func checked(name: String, on platform: Platform, field: String) throws(InvalidDescription) -> DeviceTemplate {
    guard !body.trimmingSpace.isEmpty else { throw InvalidDescription("\(field) is missing") }
    guard name.unicodeScalars.count <= DeviceTemplate.maximumNameLength,
      name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
    else {
      throw InvalidDescription(
        "a template's name must have at most \(DeviceTemplate.maximumNameLength) characters and no control characters")
    }
    let content = platform.vocabulary.azure[0].envelope.map { Self.content(of: $0, in: body) } ?? body
    let template = DeviceTemplate(name: name, body: content, headers: headers)
    do throws(DeviceTemplate.Fault) { try template.check(on: platform) } catch {
      throw InvalidDescription("\(field): \(error)")
    }
    return template
  }

  /// The content of a body that has it in a member, `{"message":{…}}`; any other body as it is. Only the content is
  /// stored, as in sends.
  private static func content(of envelope: String, in body: String) -> String {
    var message: ArraySlice<UInt8>?
    var count = 0
    do throws(JSONError) {
      var reader = try JSONReader(Array(body.utf8)[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        count += 1
        if envelope ~= key, try reader.nextKind() == .object {
          message = try reader.readRaw()
        } else {
          try reader.skipValue()
        }
      }
    } catch {
      // The template's compiler tells why it is not JSON.
      return body
    }
    guard let message, count == 1 else { return body }
    return String(decoding: message, as: UTF8.self)
  }
}
