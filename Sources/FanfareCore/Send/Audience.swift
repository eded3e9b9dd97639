/// To whom a send goes.
package enum Audience: Hashable, Sendable {
  /// Every device of one user: those tagged `username:<name>`.
  case user(String)
  /// Every device that carries the tag.
  case tag(String)
  /// One registration.
  case registration(RegistrationID)
  /// One device by its handle, registered or not.
  case device(Platform, handle: String)

  /// The tag that leads to the devices; nil where no tag does.
  package var tag: String? {
    switch self {
    case .user(let name): Tag.username(name)
    case .tag(let tag): tag
    case .registration, .device: nil
    }
  }

  /// The key of the send's record: sends to one user share a partition and so keep their order; the send's own id where there is no
  /// single user.
  package func recordKey(of send: SendID, hub: HubName) -> [UInt8] {
    switch self {
    case .user(let name): Array((hub == .default ? "" : "\(hub)/").utf8) + Array(Tag.username(name).utf8)
    case .tag(let tag) where Tag.user(of: tag) != nil: Array((hub == .default ? "" : "\(hub)/").utf8) + Array(tag.utf8)
    case .tag, .registration, .device: Array(send.description.utf8)
    }
  }
}
