import FanfareCore

/// A JSON Patch (RFC 6902) of an installation in the form of its `GET`.
/// It may change platform, handle and tags.
///
/// Two extensions: `remove` also accepts the name of a tag (`/tags/news`), because clients do not know its index, and
/// `test` of all tags ignores their order. Tags that the registry adds itself cannot be removed.
struct InstallationPatch: Hashable {
  /// The most operations in one patch.
  static let maximumCount = 100

  private let operations: [InstallationPatchOperation]

  /// Reads and checks a body. Throws a refusal that names the operation by its index.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var operations: [InstallationPatchOperation] = []
    do throws(JSONError) {
      var reader = try JSONReader(body)
      try reader.readArray { (reader) throws(JSONError) in
        guard operations.count < Self.maximumCount else {
          throw reader.error("exceeds the limit of \(Self.maximumCount) operations")
        }
        operations.append(try InstallationPatchOperation(from: &reader))
      }
      try reader.finish()
    } catch {
      throw Refusal(error)
    }
    self.operations = operations
  }

  /// Returns the changed installation.
  ///
  /// Throws a refusal that names the operation by index and path; `.conflict` if it does not fit the present values.
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
      let problem = DeviceHandle.problem(with: device.handle, platform: device.platform)
    {
      throw Refusal(.invalidField, "[\(index)] \(operations[index].path) leaves a handle that \(problem)")
    }
    let given = Set(device.tags).count { !Tag.isReserved($0) }
    guard given <= Tag.maximumCount else {
      throw Refusal(.invalidField, "/tags would have \(given) tags; at most \(Tag.maximumCount) are allowed")
    }
    return InstallationRequest(
      installation: former.installation ?? "", hub: former.hub, user: former.user, platform: device.platform,
      handle: device.handle, tags: device.tags)
  }
}

/// An installation to which the operations of a patch are applied one by one.
private struct PatchedDevice {
  var platform: Platform
  var handle: String
  var tags: [String]

  init(_ registration: Registration) {
    (platform, handle, tags) = (registration.platform, registration.handle, registration.tags)
  }

  /// Applies one operation.
  /// Returns the problem, as the end of a sentence that begins with the path, or nil.
  mutating func apply(_ operation: InstallationPatchOperation) -> String? {
    switch operation.change {
    case .setPlatform(let platform): self.platform = platform
    case .setHandle(let handle): self.handle = handle
    case .setTags(let tags): self.tags = tags
    case .insertTag(let tag, let index?):
      guard index <= tags.count else { return Self.beyondLastTag }
      tags.insert(tag, at: index)
    case .insertTag(let tag, nil): tags.append(tag)
    case .replaceTag(let tag, let index):
      guard index < tags.count else { return Self.beyondLastTag }
      tags[index] = tag
    case .removeTag(let index):
      guard index < tags.count else { return Self.beyondLastTag }
      tags.remove(at: index)
    case .removeTagNamed(let tag):
      guard tags.contains(tag) else { return "does not exist" }
      tags.removeAll { $0 == tag }
    case .testPlatform(let platform): return self.platform == platform ? nil : Self.testFailed
    case .testHandle(let handle):
      // An earlier operation may have set it in any letter case.
      let (present, tested) = (
        DeviceHandle.normalized(self.handle, platform: platform), DeviceHandle.normalized(handle, platform: platform)
      )
      return present == tested ? nil : Self.testFailed
    case .testTags(let tags): return Set(self.tags) == Set(tags) ? nil : Self.testFailed
    case .testTag(let tag, let index):
      guard index < tags.count else { return Self.beyondLastTag }
      return tags[index] == tag ? nil : Self.testFailed
    }
    return nil
  }

  private static let beyondLastTag = "is beyond the last tag"
  private static let testFailed = "does not have the tested value"
}
