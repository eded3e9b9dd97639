/// The rules for handles, the addresses that push services give to devices.
package enum DeviceHandle {
  /// The most bytes of any handle.
  package static let maximumLength = 2048

  /// The form in which handles of the platform are stored and compared.
  package static func normalized(_ handle: String, platform: Platform) -> String {
    platform.vocabulary.normalized(handle: handle)
  }

  /// The reason why the text is no valid handle of the platform, as the end of an error message;
  /// nil if it is valid.
  package static func problem(with handle: String, platform: Platform) -> String? {
    guard !handle.isEmpty else { return "must not be empty" }
    guard handle.utf8.count <= maximumLength else { return "must have at most \(maximumLength) bytes" }
    return platform.vocabulary.problem(withHandle: handle)
  }
}
