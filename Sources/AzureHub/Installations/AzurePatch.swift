import FanfareCore

/// A patch of an installation in Azure's subset of JSON Patch: `add`, `remove` and `replace` with values that are
/// strings, which contain JSON where an object or array is meant. Objects and arrays are accepted as they are, too.
struct AzurePatch: Sendable {
  private struct Operation: Sendable {
    let kind: JSONPatch.Kind
    let path: [String]
    let value: String?
  }

  private let operations: [Operation]

  /// Reads a body. Throws an error that names the operation by its index.
  init(_ body: ArraySlice<UInt8>) throws(InvalidDescription) {
    do throws(JSONError) {
      var operations: [Operation] = []
      for operation in try JSONPatch(body, .azure).operations {
        // An object or an array counts as a string that contains it.
        let json = operation.value.map { String(decoding: $0, as: UTF8.self) }
        let value = json == "null" ? nil : try operation.text ?? json
        operations.append(Operation(kind: operation.kind, path: operation.path, value: value))
      }
      self.operations = operations
    } catch {
      throw InvalidDescription(error.description)
    }
  }

  /// Applies the operations in order. Throws an error that names the operation by index and path.
  func apply(to installation: inout InstallationDocument) throws(InvalidDescription) {
    for (index, operation) in operations.enumerated() {
      do throws(InvalidDescription) { try Self.apply(operation, to: &installation) } catch {
        throw InvalidDescription("[\(index)] /\(operation.path.prefix(3).joined(separator: "/")): \(error)")
      }
    }
  }

  private static func apply(_ operation: Operation, to device: inout InstallationDocument) throws(InvalidDescription) {
    let (isRemoval, path) = (operation.kind == .remove, operation.path)
    switch (path[0].lowercased(), path.count) {
    case ("pushchannel", 1):
      guard !isRemoval else { throw InvalidDescription("cannot be removed") }
      device.handle = try device.service.checked(handle: operation.value, field: "the value")
    case ("expirationtime", 1):
      device.validUntil = try InstallationDocument.end(isRemoval ? nil : try required(operation), field: "the value")
    case ("userid", 1), ("user", 1):
      device.tags.forgetUser()
      device.user = isRemoval ? nil : try required(operation)
    case ("tags", 1), ("tags", 2):
      try change(&device.tags, operation, path.dropFirst())
      if let named = device.tags.user { device.user = named }
    case ("pushvariables", 1):
      device.pushVariables = isRemoval ? [:] : try variables(try required(operation))
    case ("pushvariables", 2):
      let value = isRemoval ? nil : try required(operation)
      // Checks the name.
      let named = try variables(
        String(decoding: JSONWriter.object { $0.member(named: path[1], value ?? "") }, as: UTF8.self))
      for name in named.keys { device.pushVariables[name] = value }
      guard device.pushVariables.count <= DeviceProfile.maximumAttributes else {
        throw InvalidDescription("there may be at most \(DeviceProfile.maximumAttributes) push variables")
      }
    case ("templates", 1...4): try change(&device.templates, operation, path.dropFirst(), of: device)
    case ("secondarytiles", 1):
      device.tiles = isRemoval ? [:] : try tiles(try required(operation), of: device)
    case ("secondarytiles", 2):
      let name = try InstallationDocument.Tile.checked(name: path[1], field: "the name")
      device.tiles[name] = isRemoval ? nil : try tile(try required(operation), of: device)
    case ("secondarytiles", 3...6):
      guard var tile = device.tiles[path[1]] else { throw InvalidDescription("there is no such tile") }
      try change(&tile, operation, path.dropFirst(2), of: device)
      device.tiles[path[1]] = tile
    default: throw InvalidDescription("this path cannot be changed")
    }
  }

  /// Changes a tile. `path` is below it.
  private static func change(
    _ tile: inout InstallationDocument.Tile, _ operation: Operation, _ path: ArraySlice<String>,
    of device: InstallationDocument
  ) throws(InvalidDescription) {
    switch (path.first?.lowercased(), path.count) {
    case ("pushchannel", 1):
      guard operation.kind != .remove else { throw InvalidDescription("cannot be removed") }
      tile.handle = try device.service.checked(handle: operation.value, field: "the value")
    case ("tags", 1), ("tags", 2): try change(&tile.tags, operation, path.dropFirst())
    case ("templates", 1...4): try change(&tile.templates, operation, path.dropFirst(), of: device)
    default: throw InvalidDescription("this path cannot be changed")
    }
  }

  /// Changes templates. `path` is empty for all of them, or begins with the name of one.
  private static func change(
    _ all: inout [String: InstallationDocument.Template], _ operation: Operation, _ path: ArraySlice<String>,
    of device: InstallationDocument
  ) throws(InvalidDescription) {
    let isRemoval = operation.kind == .remove
    guard let name = path.first else {
      all = isRemoval ? [:] : try templates(try required(operation), of: device)
      return
    }
    guard path.count > 1 else {
      all[name] = isRemoval ? nil : try template(try required(operation), of: device)
      return
    }
    guard var entry = all[name] else { throw InvalidDescription("there is no such template") }
    try change(&entry, operation, path.dropFirst(), of: device)
    all[name] = entry
  }

  private static func change(
    _ entry: inout InstallationDocument.Template, _ operation: Operation, _ path: ArraySlice<String>,
    of device: InstallationDocument
  ) throws(InvalidDescription) {
    let (isRemoval, platform) = (operation.kind == .remove, device.service.platform)
    switch (path.first?.lowercased(), path.count) {
    case ("body", 1):
      guard !isRemoval else { throw InvalidDescription("cannot be removed") }
      entry.template.body = try required(operation)
    case ("headers", 1):
      if operation.kind != .add { entry.template.removeHeaders() }
      guard !isRemoval else { return }
      for (name, value) in try headers(try required(operation)) {
        try entry.template.set(name, to: value, on: platform)
      }
    case ("headers", 2):
      let name = path[path.startIndex + 1]
      if isRemoval {
        entry.template.remove(header: name)
      } else {
        try entry.template.set(name, to: try required(operation), on: platform)
      }
    case ("expiry", 1):
      try entry.template.setExpiry(isRemoval ? nil : try required(operation), on: platform, field: "the value")
    case ("tags", 1), ("tags", 2): try change(&entry.tags, operation, path.dropFirst())
    default: throw InvalidDescription("this path cannot be changed")
    }
  }

  /// Changes tags. `path` is empty for the whole list, or names one tag by its value.
  private static func change(
    _ tags: inout AzureTags, _ operation: Operation, _ path: ArraySlice<String>
  ) throws(InvalidDescription) {
    if let tag = path.first, tag != "-" {
      tags.remove(tag)
      guard operation.kind != .remove else { return }
      return try tags.add(operation.value ?? tag, field: "the value")
    }
    guard path.isEmpty || operation.kind == .add else { throw InvalidDescription("can only be added to") }
    if operation.kind != .add {
      let user = tags.user
      tags = AzureTags()
      // The user has a path of its own.
      if let user { try tags.add(Tag.username(user), field: "the value") }
    }
    guard operation.kind != .remove else { return }
    let value = try required(operation)
    guard value.trimmingSpace.hasPrefix("[") else { return try tags.add(value, field: "the value") }
    for tag in try list(value) { try tags.add(tag, field: "the value") }
  }

  // MARK: Values

  private static func required(_ operation: Operation) throws(InvalidDescription) -> String {
    guard let value = operation.value else { throw InvalidDescription("must have a value") }
    return value
  }

  /// Reads a value that contains JSON.
  private static func read<Value>(
    _ text: String, _ body: (inout JSONReader) throws(JSONError) -> Value
  ) throws(InvalidDescription) -> Value {
    do throws(JSONError) {
      var reader = try JSONReader(Array(text.utf8)[...], refusesLoneSurrogates: true)
      let value = try body(&reader)
      try reader.finish()
      return value
    } catch {
      throw InvalidDescription("the value \(error)")
    }
  }

  private static func list(_ text: String) throws(InvalidDescription) -> [String] {
    try read(text) { (reader) throws(JSONError) in
      var list: [String] = []
      try reader.readArray { (reader) throws(JSONError) in list.append(try reader.readString()) }
      return list
    }
  }

  private static func headers(_ text: String) throws(InvalidDescription) -> [String: String] {
    try read(text) { (reader) throws(JSONError) in
      var headers: [String: String] = [:]
      try reader.readObject { (key, reader) throws(JSONError) in headers[key.text] = try reader.readString() }
      return headers
    }
  }

  private static func variables(_ text: String) throws(InvalidDescription) -> [String: String] {
    try read(text) { (reader) throws(JSONError) in
      try reader.readTemplateValues(maximum: DeviceProfile.maximumAttributes)
    }
  }

  private static func template(
    _ text: String, of device: InstallationDocument
  ) throws(InvalidDescription) -> InstallationDocument.Template {
    try read(text) { (reader) throws(JSONError) in try reader.readAzureTemplate(on: device.service.platform) }
  }

  private static func tile(
    _ text: String, of device: InstallationDocument
  ) throws(InvalidDescription) -> InstallationDocument.Tile {
    try read(text) { (reader) throws(JSONError) in try reader.readAzureTile(of: device.service) }
  }

  private static func tiles(
    _ text: String, of device: InstallationDocument
  ) throws(InvalidDescription) -> [String: InstallationDocument.Tile] {
    do throws(JSONError) {
      return try InstallationDocument.readTiles(Array(text.utf8)[...], of: device.service)
    } catch {
      throw InvalidDescription("the value \(error)")
    }
  }

  private static func templates(
    _ text: String, of device: InstallationDocument
  ) throws(InvalidDescription) -> [String: InstallationDocument.Template] {
    do throws(JSONError) {
      return try InstallationDocument.readTemplates(Array(text.utf8)[...], on: device.service.platform)
    } catch {
      throw InvalidDescription("the value \(error)")
    }
  }
}

extension AzureTags {
  fileprivate mutating func forgetUser() { if let user { remove(Tag.username(user)) } }
}
