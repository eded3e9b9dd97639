/// A payload in the form of one platform's service.
package enum NativePayload: Hashable, Sendable {
  /// The form of a payload.
  package enum Form: Sendable { case json, text }

  /// A JSON object, kept byte for byte.
  case json([UInt8])
  /// A text, not empty.
  case text(String)

  /// A payload of the form, made from its text.
  package init(_ text: String, as form: Form) {
    self =
      switch form {
      case .json: .json(Array(text.utf8))
      case .text: .text(text)
      }
  }

  /// The payload as a text.
  package var text: String {
    switch self {
    case .json(let bytes): String(decoding: bytes, as: UTF8.self)
    case .text(let text): text
    }
  }
}

/// The native payloads of a content, at most one for each platform. A single one needs no memory of its own.
package struct NativePayloads: Hashable, Sendable {
  /// A payload and its platform.
  package struct Entry: Hashable, Sendable {
    package let platform: Platform
    package let payload: NativePayload
  }

  private var first: Entry?
  /// Empty unless there is a first one.
  private var others: [Entry] = []

  package init() {}

  package init(_ platform: Platform, _ payload: NativePayload) { first = Entry(platform: platform, payload: payload) }

  package var isEmpty: Bool {
    // Pattern matching, because a comparison with nil copies the payload.
    if case .none = first { true } else { false }
  }

  /// The payloads in the order of the platforms.
  package var entries: [Entry] { first.map { [$0] + others } ?? [] }

  /// The platforms that have one.
  package var platforms: PlatformSet {
    guard let first else { return [] }
    return others.reduce(into: PlatformSet(first.platform)) { $0.formUnion(PlatformSet($1.platform)) }
  }

  package subscript(platform: Platform) -> NativePayload? {
    get {
      guard let first else { return nil }
      if first.platform == platform { return first.payload }
      return others.first { $0.platform == platform }?.payload
    }
    set {
      if newValue != nil, first == nil || others.isEmpty && first?.platform == platform {
        first = newValue.map { Entry(platform: platform, payload: $0) }
        return
      }
      var all = entries.filter { $0.platform != platform }
      if let newValue {
        let place = all.firstIndex { $0.platform.ordinal > platform.ordinal } ?? all.endIndex
        all.insert(Entry(platform: platform, payload: newValue), at: place)
      }
      (first, others) = (all.first, Array(all.dropFirst()))
    }
  }
}
