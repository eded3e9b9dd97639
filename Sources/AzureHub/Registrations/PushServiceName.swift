import FanfareCore

/// A push service as Azure's clients name it. Two names stand for Firebase Cloud Messaging.
struct PushServiceName: Hashable, Sendable {
  let platform: Platform
  let kind: AzureKind

  private init(_ platform: Platform, _ kind: AzureKind) { (self.platform, self.kind) = (platform, kind) }

  /// All names. Azure's lists begin with Windows, its first platform.
  static let all: [PushServiceName] = {
    let all = Platform.allCases.flatMap { platform in platform.vocabulary.azure.map { Self(platform, $0) } }
    return all.filter { $0.platform == .wns } + all.filter { $0.platform != .wns }
  }()

  static let gcm = Self(.fcm, FCM.azure[0])

  /// The names in Azure of services that may not be served. Fcm is one: Azure refuses it too, its clients write Gcm.
  private static let refused = ["Adm", "Baidu", "Browser", "Fcm", "Mpns", "NokiaX", "Xiaomi"]

  /// The service of a registration, by the kind that a client gave: one of Gcm may know no FcmV1, in any version.
  ///
  /// Without a kind Firebase is FcmV1, unless the client asks for an older version (`isOlder`), which has none.
  init(_ platform: Platform, _ form: [String: String], isOlder: Bool) {
    let kinds = platform.vocabulary.azure
    let isFirst = isOlder || form[Self.formKey] == kinds[0].name
    self.init(platform, isFirst ? kinds[0] : kinds[kinds.count - 1])
  }

  private static let formKey = "service"

  /// Whether another name of the platform is newer.
  private var isOlder: Bool { kind != platform.vocabulary.azure.last }

  /// The kind's entry in `DeviceProfile.azure`; empty for the default kind of the platform.
  var form: [String: String] { isOlder ? [Self.formKey: kind.name] : [:] }

  /// Reads the name in front of `RegistrationDescription` or `TemplateRegistrationDescription`.
  init(ofRegistration name: String) throws(InvalidDescription) {
    if let service = Self.all.first(where: { $0.kind.name == name }) {
      self = service
    } else if Self.refused.contains(name) {
      throw InvalidDescription(
        "\(name)RegistrationDescription is not supported; \(Self.all.map(\.kind.name).series("and")) are")
    } else {
      throw InvalidDescription("the specified resource description is invalid")
    }
  }

  /// Reads the `platform` of an installation, in any letter case.
  init(ofInstallation name: String) throws(InvalidDescription) {
    let name = name.lowercased()
    let served = Self.all.map(\.kind.installation)
    if let service = Self.all.first(where: {
      $0.kind.installation.lowercased() == name || $0.kind.aliases.contains(name)
    }) {
      self = service
    } else if Self.refused.contains(where: { $0.lowercased() == name }) {
      throw InvalidDescription("platform: \(name) is not supported; \(served.series("and")) are")
    } else {
      throw InvalidDescription("platform must be \(served.alternatives)")
    }
  }

  /// The name in results of sends, and the format of a send.
  var resultName: String { kind.name.lowercased() }

  /// The body of a template in the form of the service.
  func body(of template: String) -> String {
    guard let envelope = kind.envelope, !isOlder else { return template }
    return "{\"\(envelope)\":\(template)}"
  }

  /// A handle in Azure's form: tokens of Apple in upper case.
  func azureForm(of handle: String) -> String { platform == .apns ? handle.uppercased() : handle }

  /// The handle if it is valid.
  func checked(handle: String?, field: String) throws(InvalidDescription) -> String {
    guard let handle = handle?.trimmingSpace, !handle.isEmpty else { throw InvalidDescription("\(field) is missing") }
    if let problem = DeviceHandle.problem(with: handle, platform: platform) {
      throw InvalidDescription("\(field) \(problem)")
    }
    return handle
  }
}
