import FanfareCore
import FrontEnd
import HTTPTypes

/// The content of a request to send: the payload of a format, and the header fields for the push service.
struct Notification: Sendable {
  /// The send without its audience.
  private(set) var fields = SendFields()
  /// The platform of a native payload; nil for the properties of templates.
  let platform: Platform?
  private let expression: String
  private let format: String
  private let body: ArraySlice<UInt8>

  /// Reads the header fields of a request and its body. A time to live counts from `moment`.
  init(of headers: HTTPFields, body: ArraySlice<UInt8>, at moment: UnixTime) throws(Refusal) {
    guard let format = headers[.notificationFormat] else {
      throw Refusal(.malformedRequest, "The header ServiceBusNotification-Format is missing.")
    }
    (self.format, self.body) = (format.lowercased(), body)
    expression = headers[.notificationTags] ?? ""
    let kinds = Platform.allCases.flatMap { platform in
      platform.vocabulary.azure.map { (format: $0.name.lowercased(), platform: platform, envelope: $0.envelope) }
    }
    let kind = kinds.first { $0.format == format.lowercased() }
    guard kind != nil || self.format == "template" else {
      let formats = (kinds.map(\.format) + ["template"]).series("and")
      throw Refusal(
        .invalidField,
        Self.refused.contains(self.format)
          ? "The format \(self.format) is not supported; the formats are \(formats)."
          : "ServiceBusNotification-Format is unknown; the formats are \(formats).")
    }
    platform = kind?.platform
    guard !body.isEmpty else { throw Refusal(.malformedBody, "The notification has no body.") }
    let template = try Self.template(of: headers, isAllowed: platform == nil)
    guard let platform else {
      fields.template = try TemplateContent(name: template, properties: Self.properties(body))
      return
    }
    fields.platforms = PlatformSet(platform)
    switch platform.vocabulary.nativeForm {
    case .json:
      let object = try Self.object(body)
      fields.native[platform] = .json(
        try kind?.envelope.map { (name) throws(Refusal) in
          try Self.content(of: name, in: object)
        } ?? object)
    case .text:
      guard let text = String(validating: body, as: UTF8.self) else {
        throw Refusal(.malformedBody, "The notification is not UTF-8.")
      }
      fields.native[platform] = .text(text)
    }
    fields.headers = try Self.headers(of: headers, for: platform)
    if platform == .apns { try readAppleHeaders(headers, at: moment) }
  }

  /// Formats of Azure's clients that may not be served.
  private static let refused: Set = ["windowsphone", "adm", "baidu", "browser", "xiaomi", "nokiax", "fcm"]

  /// The audience of the request's tags: everyone without any.
  func audience() throws(Refusal) -> Audience { try AzureTag.audience(of: expression) }

  /// The audience of one device, registered or not.
  func audience(ofDevice handle: String) throws(Refusal) -> Audience {
    guard let platform else {
      throw Refusal(.invalidField, "The format template has no direct notifications; send a native one.")
    }
    if let problem = DeviceHandle.problem(with: handle, platform: platform) {
      throw Refusal(.invalidField, "The device handle \(problem).")
    }
    return .device(platform, handle: DeviceHandle.normalized(handle, platform: platform))
  }

  /// Checks the header fields for Apple, and reads their older names.
  ///
  /// The time to live ends at `apns-expiration`.
  private mutating func readAppleHeaders(_ fields: HTTPFields, at moment: UnixTime) throws(Refusal) {
    if self.fields.headers["apns-priority"] == nil, let priority = fields[.apnsPriority] {
      self.fields.headers["apns-priority"] = priority
    }
    for (name, values) in [("apns-push-type", ["alert", "background"]), ("apns-priority", ["10", "5", "1"])] {
      guard let value = self.fields.headers[name], !values.contains(value) else { continue }
      throw Refusal(.malformedRequest, "\(name) must be one of \(values.joined(separator: ", ")).")
    }
    guard let text = self.fields.headers["apns-expiration"] ?? fields[.apnsExpiry] else { return }
    guard let seconds = UInt32(text).map(Int64.init) ?? AzureTime.read(text)?.seconds, seconds >= 0 else {
      throw Refusal(.malformedRequest, "apns-expiration must be Unix seconds or a date and time.")
    }
    self.fields.headers["apns-expiration"] = String(seconds)
    if seconds > 0 {
      self.fields.timeToLive = Int(min(max(1, seconds - moment.seconds), Int64(SendRequest.maximumTimeToLive)))
    }
  }

  /// The template that a header field of this project names: one of the hub, or else the devices' own of that name.
  /// Azure's clients cannot name any, and their sends go to all templates of devices.
  private static func template(of headers: HTTPFields, isAllowed: Bool) throws(Refusal) -> String? {
    guard let name = headers[.templateName] else { return nil }
    guard isAllowed else { throw Refusal(.malformedRequest, "Fanfare-Template belongs to the format template.") }
    guard DeviceTemplate.isName(name) else {
      throw Refusal(.malformedRequest, "Fanfare-Template must be a name of \(DeviceTemplate.nameRule).")
    }
    return name
  }

  /// The parts in which equal sends agree.
  var identity: [String] {
    [format, expression, String(decoding: body, as: UTF8.self)] + (fields.template?.name.map { [$0] } ?? [])
      + fields.headers.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
  }

  /// A JSON object, as it is.
  private static func object(_ body: ArraySlice<UInt8>) throws(Refusal) -> [UInt8] {
    do throws(JSONError) {
      var reader = try JSONReader(body)
      guard try reader.nextKind() == .object else { throw reader.error("must be a JSON object") }
      let object = Array(try reader.readRaw())
      try reader.finish()
      return object
    } catch {
      throw Refusal(error)
    }
  }

  /// The payload in a body that may have it in a member: the value of `message` of an FCM v1 request, or a body of the
  /// older protocol.
  private static func content(of envelope: String, in whole: [UInt8]) throws(Refusal) -> [UInt8] {
    var message: [UInt8]?
    var count = 0
    do throws(JSONError) {
      var reader = try JSONReader(whole[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        count += 1
        if envelope ~= key, try reader.nextKind() == .object {
          message = Array(try reader.readRaw())
        } else {
          try reader.skipValue()
        }
      }
    } catch {
      throw Refusal(error)
    }
    guard let message else { return whole }
    // One of the others may be `validate_only`, with which FCM sends nothing.
    guard count == 1 else { throw Refusal(.invalidField, "The notification must have nothing beside \(envelope).") }
    return message
  }

  /// The properties of a template send: a flat object of strings.
  private static func properties(_ body: ArraySlice<UInt8>) throws(Refusal) -> [String: String] {
    do throws(JSONError) {
      var reader = try JSONReader(body, refusesLoneSurrogates: true)
      let properties = try reader.readTemplateValues(maximum: TemplateContent.maximumProperties)
      try reader.finish()
      return properties
    } catch {
      throw Refusal(error)
    }
  }

  /// The request's header fields that the push service of the platform knows, by their names in lower case.
  private static func headers(of fields: HTTPFields, for platform: Platform) throws(Refusal) -> [String: String] {
    var headers: [String: String] = [:]
    for field in fields {
      // The type of the request is not that of the push.
      guard PushHeader.platform(of: field.name.canonicalName) == platform, field.name != .contentType else { continue }
      guard PushHeader.isSound(field.value) else {
        throw Refusal(
          .malformedRequest, "\(field.name) must have 1 to \(PushHeader.maximumLength) visible ASCII characters.")
      }
      headers[field.name.canonicalName] = field.value
    }
    return headers
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; these literals are valid.
  static let notificationFormat = HTTPField.Name("ServiceBusNotification-Format")!
  static let notificationTags = HTTPField.Name("ServiceBusNotification-Tags")!
  static let templateName = HTTPField.Name("Fanfare-Template")!
  static let deviceHandle = HTTPField.Name("ServiceBusNotification-DeviceHandle")!
  static let scheduleTime = HTTPField.Name("ServiceBusNotification-ScheduleTime")!
  static let apnsExpiry = HTTPField.Name("ServiceBusNotification-Apns-Expiry")!
  static let apnsPriority = HTTPField.Name("X-Apns-Priority")!
}
