import FanfareCore
import Registry

/// A tombstone as `fanfare registrations tombstones` prints it.
struct TombstoneLine: Encodable {
  let registration: String
  let at: String
  let cause: String
  let detail: String

  init(_ buried: BuriedRegistration) {
    registration = buried.registration.description
    at = buried.tombstone.at.description
    cause = buried.tombstone.cause.rawValue
    detail = buried.tombstone.detail
  }

  /// In one line of text.
  var text: String { ([at, registration, cause] + (detail.isEmpty ? [] : [detail])).joined(separator: " ") }
}
