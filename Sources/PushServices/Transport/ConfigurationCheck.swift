import FanfareCore

/// The checks that configurations have in common. Each names the field that fails it.
enum ConfigurationCheck {
  /// A host name or address, without anything that could end it inside a URL or a header field.
  static func host(_ value: String, field: String) throws(PushConfigurationError) {
    let isSound = value.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    guard isSound, (1...253).contains(value.utf8.count) else {
      throw PushConfigurationError(field: field, problem: "must be a host name")
    }
  }

  /// A TCP port.
  static func port(_ value: Int, field: String) throws(PushConfigurationError) {
    guard (1...65_535).contains(value) else {
      throw PushConfigurationError(field: field, problem: "must be a port, 1 to 65535")
    }
  }

  /// Something to be counted or waited for.
  static func positive(_ value: some Comparable & AdditiveArithmetic, field: String) throws(PushConfigurationError) {
    guard value > .zero else { throw PushConfigurationError(field: field, problem: "must be more than 0") }
  }

  /// An identifier or secret: visible ASCII without spaces, and something at all.
  static func token(_ value: String, field: String) throws(PushConfigurationError) {
    guard HeaderValue.isVisibleASCII(value) else {
      throw PushConfigurationError(
        field: field, problem: value.isEmpty ? "is missing" : "must be visible ASCII without spaces")
    }
  }

  /// An `https` URL. Whatever goes to it is secret.
  static func httpsURL(_ value: String, field: String) throws(PushConfigurationError) {
    guard value.lowercased().hasPrefix("https://"), value.utf8.count > 8, HeaderValue.isVisibleASCII(value) else {
      throw PushConfigurationError(field: field, problem: "must be an https URL")
    }
  }
}
