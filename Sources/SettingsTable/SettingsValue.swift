/// One value of the configuration in every form in which it can be read; nil for the others.
package struct SettingsValue: Sendable {
  let text: String?
  let whole: Int?
  let number: Double?
  let truth: Bool?
  let texts: [String]?
  let wholes: [Int]?

  /// A value that is no list.
  package init(text: String, whole: Int?, number: Double?, truth: Bool?) {
    (self.text, self.whole, self.number, self.truth) = (text, whole, number, truth)
    (texts, wholes) = (nil, nil)
  }

  /// A list; `wholes` is nil if an element is no whole number.
  package init(texts: [String], wholes: [Int]?) {
    (self.texts, self.wholes) = (texts, wholes)
    (text, whole, number, truth) = (nil, nil, nil, nil)
  }

  /// The value of an environment variable. The elements of a list are separated by commas.
  init(variable: String) {
    (text, whole) = (variable, Int(variable))
    number = Double(variable)
    truth =
      switch variable.lowercased() {
      case "yes", "1", "true": true
      case "no", "0", "false": false
      default: nil
      }
    let elements = variable.split(separator: ",", omittingEmptySubsequences: false).map(Self.trimmed)
    let numbers = elements.compactMap { Int($0) }
    (texts, wholes) = (elements, numbers.count == elements.count ? numbers : nil)
  }

  private static func trimmed(_ text: Substring) -> String {
    var rest = text.drop(while: \.isWhitespace)
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return String(rest)
  }
}

/// Values of the configuration by key: those of the file or of the environment.
package struct SettingsSource: Sendable {
  private let values: [String: SettingsValue]
  /// The name under which ``values`` has a key.
  private let name: @Sendable (_ key: String) -> String

  /// The values of a file by dotted key.
  package init(file values: [String: SettingsValue]) {
    self.values = values
    name = { $0 }
  }

  package init(environment: [String: String]) {
    let spelt = Dictionary(environment.map { (Self.spelling(of: $0.key), $0.value) }) { first, _ in first }
    values = spelt.mapValues(SettingsValue.init(variable:))
    name = Self.variable
  }

  func value(_ key: String) -> SettingsValue? { values[name(key)] }

  /// The environment variable of a key.
  package static func variable(of key: String) -> String {
    var name = "FANFARE_"
    var isAfterLowercase = false
    for character in key {
      if isAfterLowercase, character.isUppercase { name += "_" }
      name += character.isLetter || character.isNumber ? character.uppercased() : "_"
      isAfterLowercase = character.isLowercase
    }
    return name
  }

  /// The spelling of a variable that ``variable(of:)`` has.
  ///
  /// The variable of `keyIDFile` ends with KEY_IDFILE, because no new word starts between two capitals.
  package static func spelling(of name: String) -> String {
    name.hasSuffix("_APNS_KEY_ID_FILE") ? "\(name.dropLast("_FILE".count))FILE" : name
  }
}
