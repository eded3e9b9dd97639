import Synchronization

/// A push service, as a code of one byte. A ``PlatformVocabulary`` declares all that is special about it.
package struct Platform: Hashable, Sendable {
  /// The number in stored rows, 1 to 63.
  package let code: UInt8

  fileprivate init(code: UInt8) { self.code = code }

  /// Reads a stored number; nil for one that is not in the list.
  package init?(stored code: Int64) {
    guard (0..<64).contains(code), PlatformList.fixed.ordinals[Int(code)] >= 0 else { return nil }
    self.code = UInt8(code)
  }

  /// Reads a name exactly as records have it; nil for one that is not in the list.
  package init?(rawName name: String) {
    guard let platform = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = platform
  }

  /// Reads a name or an alias in any letter case; nil for one that is not in the list.
  package init?(name: String) {
    let name = name.lowercased()
    guard
      let platform = Self.allCases.first(where: { $0.name == name || $0.vocabulary.aliases.contains(name) })
    else { return nil }
    self = platform
  }

  /// The name in JSON, metrics and settings.
  package var name: String { PlatformList.fixed.names[ordinal] }

  /// The place in `allCases`.
  package var ordinal: Int { Int(PlatformList.fixed.ordinals[Int(code)]) }

  package var vocabulary: any PlatformVocabulary.Type { PlatformList.fixed.vocabularies[ordinal] }

  /// The most bytes in a payload, as documented by the services.
  package var payloadLimit: Int { vocabulary.payloadLimit }
}

extension PlatformVocabulary {
  /// The platform that is declared here.
  package static var platform: Platform { Platform(code: code) }
}

extension Platform: CaseIterable {
  /// The list, in the order in which platforms are written.
  package static var allCases: [Platform] { PlatformList.fixed.platforms }
  package static var count: Int { PlatformList.fixed.platforms.count }
  /// All titles, as a list in a sentence.
  package static var titles: String { allCases.map { $0.vocabulary.title }.series("and") }
}

extension Platform: CustomStringConvertible {
  package var description: String { name }
}

/// The platforms of this process: the one list. It is fixed by its first use.
package enum PlatformList {
  private static let declared = Mutex<(list: [any PlatformVocabulary.Type], isFixed: Bool)>(
    ([APNs.self, FCM.self, WNS.self], false))

  /// The list by ordinal, and the ordinals by code, so that the hot paths index arrays.
  fileprivate struct Table: Sendable {
    let vocabularies: [any PlatformVocabulary.Type]
    let platforms: [Platform]
    let names: [String]
    /// -1 for a code that no platform has.
    let ordinals: [Int8]
  }

  fileprivate static let fixed: Table = {
    let list = declared.withLock { declared in
      declared.isFixed = true
      return declared.list
    }
    for (index, vocabulary) in list.enumerated() {
      precondition((1..<64).contains(vocabulary.code), "\(vocabulary.name) has the code \(vocabulary.code)")
      precondition(
        !list[..<index].contains { $0.code == vocabulary.code || $0.name == vocabulary.name },
        "\(vocabulary.name) has the name or the code of another platform")
    }
    var ordinals = [Int8](repeating: -1, count: 64)
    for (ordinal, vocabulary) in list.enumerated() { ordinals[Int(vocabulary.code)] = Int8(ordinal) }
    return Table(
      vocabularies: list, platforms: list.map { Platform(code: $0.code) }, names: list.map { $0.name },
      ordinals: ordinals)
  }()

  /// Adds a platform in front of the others. A program does so first of all, before anything uses the list.
  package static func add(_ vocabulary: any PlatformVocabulary.Type) {
    declared.withLock { declared in
      precondition(!declared.isFixed, "\(vocabulary) is added after the list was used")
      declared.list.insert(vocabulary, at: 0)
    }
  }
}

/// A set of platforms: the bit of a platform is its code.
package struct PlatformSet: OptionSet, Hashable, Sendable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The set with one platform.
  package init(_ platform: Platform) { rawValue = 1 << UInt64(platform.code) }

  /// All platforms.
  package static let all = Platform.allCases.reduce(into: PlatformSet()) { $0.formUnion(PlatformSet($1)) }

  package func contains(_ platform: Platform) -> Bool { contains(PlatformSet(platform)) }

  /// The platforms in a fixed order.
  package var platforms: [Platform] { Platform.allCases.filter(contains) }
}

extension [String] {
  /// The words as a list in a sentence: `a, b and c`.
  package func series(_ conjunction: String) -> String {
    count > 1 ? "\(dropLast().joined(separator: ", ")) \(conjunction) \(self[count - 1])" : first ?? ""
  }

  /// The words as alternatives: `a, b or c`.
  package var alternatives: String { series("or") }
}
