import FanfareCore

/// A push service as Azure's clients name it. Two names stand for Firebase Cloud Messaging.
enum PushServiceName: String, CaseIterable, Hashable, Sendable {
  case windows = "Windows"
  case apple = "Apple"
  case gcm = "Gcm"
  case fcmV1 = "FcmV1"

  /// The names in Azure of services that are not served. Fcm is one: Azure refuses it too, its clients write Gcm.
  private static let refused = ["Adm", "Baidu", "Browser", "Fcm", "Mpns", "NokiaX", "Xiaomi"]

  /// The service of a registration, by the kind that a client gave: one of Gcm may know no FcmV1, in any version.
  ///
  /// Without a kind Firebase is FcmV1, unless the client asks for an older version (`isOlder`), which has none.
  init(_ platform: Platform, _ form: [String: String], isOlder: Bool) {
    self =
      switch platform {
      case .apns: .apple
      case .wns: .windows
      case .fcm: isOlder || form[Self.formKey] == Self.gcm.rawValue ? .gcm : .fcmV1
      }
  }

  private static let formKey = "service"

  /// The kind's entry in `DeviceProfile.azure`; empty for the default kind of the platform.
  var form: [String: String] { self == .gcm ? [Self.formKey: rawValue] : [:] }

  /// Reads the name in front of `RegistrationDescription` or `TemplateRegistrationDescription`.
  init(ofRegistration name: String) throws(InvalidDescription) {
    if let service = Self(rawValue: name) {
      self = service
    } else if Self.refused.contains(name) {
      throw InvalidDescription("\(name)RegistrationDescription is not supported; \(Self.supported)")
    } else {
      throw InvalidDescription("the specified resource description is invalid")
    }
  }

  /// Reads the `platform` of an installation, in any letter case.
  init(ofInstallation name: String) throws(InvalidDescription) {
    switch name.lowercased() {
    case "wns": self = .windows
    case "apns": self = .apple
    case "gcm", "fcm": self = .gcm
    case "fcmv1": self = .fcmV1
    case let name where ["mpns", "adm", "baidu", "browser", "xiaomi", "nokiax"].contains(name):
      throw InvalidDescription("platform: \(name) is not supported; wns, apns, gcm and fcmV1 are")
    default: throw InvalidDescription("platform must be wns, apns, gcm or fcmV1")
    }
  }

  private static var supported: String { "Windows, Apple, Gcm and FcmV1 are" }

  var platform: Platform {
    switch self {
    case .windows: .wns
    case .apple: .apns
    case .gcm, .fcmV1: .fcm
    }
  }

  /// The `platform` of an installation.
  var installationPlatform: String {
    switch self {
    case .windows: "wns"
    case .apple: "apns"
    case .gcm: "gcm"
    case .fcmV1: "fcmV1"
    }
  }

  /// The name in results of sends.
  var resultName: String {
    switch self {
    case .windows: "windows"
    case .apple: "apple"
    case .gcm: "gcm"
    case .fcmV1: "fcmv1"
    }
  }

  /// The element of a registration that holds the handle.
  var handleElement: String {
    switch self {
    case .windows: "ChannelUri"
    case .apple: "DeviceToken"
    case .gcm: "GcmRegistrationId"
    case .fcmV1: "FcmV1RegistrationId"
    }
  }

  /// A handle in Azure's form: tokens of Apple in upper case.
  func azureForm(of handle: String) -> String { self == .apple ? handle.uppercased() : handle }

  /// The handle if it is valid.
  func checked(handle: String?, field: String) throws(InvalidDescription) -> String {
    guard let handle = handle?.trimmingSpace, !handle.isEmpty else { throw InvalidDescription("\(field) is missing") }
    if let problem = DeviceHandle.problem(with: handle, platform: platform) {
      throw InvalidDescription("\(field) \(problem)")
    }
    return handle
  }
}
