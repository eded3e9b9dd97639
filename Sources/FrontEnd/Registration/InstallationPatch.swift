import FanfareCore

/// A JSON Patch (RFC 6902) of an installation, as its `GET` shows it: `platform`, the handle, and tags may be changed.
///
/// Beyond the standard, `remove` also takes a tag by its name, `/tags/news`, since its index is nobody's business.
/// `test` of all tags is in any order. The tags that the registry gives itself stay whatever is said of them.
struct InstallationPatch: Hashable {
  /// The most operations of one patch.
  static let maximumCount = 100

  private let operations: [InstallationPatchOperation]

  /// Reads and checks the body. Throws a refusal that names the operation by its index.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var operations: [InstallationPatchOperation] = []
    do throws(JSONError) {
      var reader = try JSONReader(body)
      try reader.readArray { (reader) throws(JSONError) in
        guard operations.count < Self.maximumCount else {
          throw reader.error("is one operation more than the \(Self.maximumCount) allowed")
        }
        operations.append(try InstallationPatchOperation(from: &reader))
      }
      try reader.finish()
    } catch {
      throw Refusal(error)
    }
    self.operations = operations
  }

  /// What the installation is to become. Throws a refusal, `.conflict` where it is a matter of what is there, that
  /// names the operation by index and path.
  func applied(to former: Registration) throws(Refusal) -> InstallationRequest {
    var device = PatchedDevice(former)
    var lastOfAddress: Int?
    for (index, operation) in operations.enumerated() {
      if operation.changesAddress { lastOfAddress = index }
      if let problem = device.apply(operation) {
        throw Refusal(.conflict, "[\(index)] \(operation.path) \(problem); nothing was changed")
      }
    }
    if let index = lastOfAddress,
      let complaint = DeviceHandle.problem(with: device.handle, platform: device.platform)
    {
      throw Refusal(.invalidField, "[\(index)] \(operations[index].path) leaves a handle that \(complaint)")
    }
    let given = Set(device.tags).count { !Tag.isReserved($0) }
    guard given <= Tag.maximumCount else {
      throw Refusal(.invalidField, "/tags would be more than the \(Tag.maximumCount) allowed")
    }
    return InstallationRequest(
      installation: former.installation ?? "", hub: former.hub, user: former.user, platform: device.platform,
      handle: device.handle, tags: device.tags)
  }
}

/// An installation while the operations of a patch are done on it, one after the other.
private struct PatchedDevice {
  var platform: Platform
  var handle: String
  var tags: [String]

  init(_ registration: Registration) {
    (platform, handle, tags) = (registration.platform, registration.handle, registration.tags)
  }

  /// Does one operation. Returns what is wrong with what is there, as the end of a sentence that begins with the path.
  mutating func apply(_ operation: InstallationPatchOperation) -> String? {
    switch operation.change {
    case .setPlatform(let platform): self.platform = platform
    case .setHandle(let handle): self.handle = handle
    case .setTags(let tags): self.tags = tags
    case .insertTag(let tag, let index?):
      guard index <= tags.count else { return Self.beyond }
      tags.insert(tag, at: index)
    case .insertTag(let tag, nil): tags.append(tag)
    case .replaceTag(let tag, let index):
      guard index < tags.count else { return Self.beyond }
      tags[index] = tag
    case .removeTag(let index):
      guard index < tags.count else { return Self.beyond }
      tags.remove(at: index)
    case .removeTagNamed(let tag):
      guard tags.contains(tag) else { return "is not there" }
      tags.removeAll { $0 == tag }
    case .testPlatform(let platform): return self.platform == platform ? nil : Self.different
    case .testHandle(let handle):
      // An operation before may have set it in any case.
      let (held, tested) = (self.handle, handle)
      let isSame =
        DeviceHandle.normalized(held, platform: platform) == DeviceHandle.normalized(tested, platform: platform)
      return isSame ? nil : Self.different
    case .testTags(let tags): return Set(self.tags) == Set(tags) ? nil : Self.different
    case .testTag(let tag, let index):
      guard index < tags.count else { return Self.beyond }
      return tags[index] == tag ? nil : Self.different
    }
    return nil
  }

  private static let beyond = "is beyond the last tag"
  private static let different = "is not what was tested for"
}
