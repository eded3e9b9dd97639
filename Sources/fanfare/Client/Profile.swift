import Foundation
import Roles
import SettingsTable

/// The address of a deployment's HTTP API and the caller's credentials.
///
/// They come from the environment or from a profile file, never from the command line, which other users of the machine
/// can see.
struct Profile: Sendable {
  enum Credentials: Sendable {
    case key(String)
    case password(user: String, password: String)
  }

  /// The names of the values in the file, and of the variables that override them.
  enum Name: String, CaseIterable {
    case url, key, user, password, hub, trustRootsFile

    var variable: String {
      switch self {
      case .trustRootsFile: "FANFARE_TRUST_ROOTS_FILE"
      default: "FANFARE_\(rawValue.uppercased())"
      }
    }
  }

  /// Scheme, host and port, without a slash at the end.
  let url: String
  /// Nil for a caller with a client certificate's proxy, or none.
  let credentials: Credentials?
  let hub: String?
  /// Certificates (PEM) to trust instead of the system's.
  let trustRootsFile: String?

  /// Reads the profile. Throws `SettingsError` with all mistakes, which never contain a secret.
  ///
  /// `path` must exist if it is given; the default is `~/.config/fanfare/profile.yaml`, if that exists.
  init(path: String?, environment: [String: String]) throws {
    let given = path ?? environment["FANFARE_PROFILE"]
    let file = given ?? Self.standardPath(environment)
    var values: [Name: String] = [:]
    var mistakes: [SettingsMistake] = []
    if given != nil || FileManager.default.fileExists(atPath: file) {
      (values, mistakes) = try Self.read(file)
    }
    let fromFile = values
    // A key in the environment takes the place of the file's user, and the other way round.
    if environment[Name.key.variable] != nil { (values[.user], values[.password]) = (nil, nil) }
    if environment[Name.user.variable] != nil { values[.key] = nil }
    for name in Name.allCases {
      if let value = environment[name.variable], !value.isEmpty { values[name] = value }
    }
    func complain(_ name: Name, _ expectation: String) {
      let place: SettingsMistake.Place? =
        if environment[name.variable] != nil {
          .variable(name.variable)
        } else {
          fromFile.isEmpty ? nil : .file(file, line: nil)
        }
      var mistake = SettingsMistake(key: name.rawValue, expectation: expectation)
      mistake.place = place
      mistakes.append(mistake)
    }
    if let url = values[.url] {
      if !Self.isProtected(url) { complain(.url, "must be a URL of https, or of http on a loopback address") }
    } else if mistakes.isEmpty {
      complain(.url, "is missing: the address of the HTTP API, in \(file) or in \(Name.url.variable)")
    }
    if values[.key] != nil, values[.user] != nil { complain(.key, "must not be given together with user") }
    if values[.user] != nil, values[.password] == nil { complain(.password, "is missing: user is given without it") }
    if values[.user]?.contains(":") == true { complain(.user, "must not contain a colon") }
    if let key = values[.key], !key.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) {
      complain(.key, "must be an API key or a token, without spaces")
    }
    if let error = SettingsError(mistakes) { throw error }
    url = (values[.url] ?? "").trimmingSuffix { $0 == "/" }
    hub = values[.hub]
    trustRootsFile = values[.trustRootsFile]
    credentials =
      if let key = values[.key] {
        .key(key)
      } else if let user = values[.user], let password = values[.password] {
        .password(user: user, password: password)
      } else {
        nil
      }
  }

  static func standardPath(_ environment: [String: String]) -> String {
    let configuration = environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    return (configuration ?? "\(environment["HOME"] ?? "")/.config") + "/fanfare/profile.yaml"
  }

  /// Reads a profile's file; one that others may read is refused.
  private static func read(_ path: String) throws -> ([Name: String], [SettingsMistake]) {
    if let problem = PrivateFile.problem(at: path) {
      throw SettingsError("--profile", "names a file that is not safe: \(path): \(problem)")
    }
    let file = try SettingsFile(path: path, of: "--profile")
    var values: [Name: String] = [:]
    var unknown: [SettingsMistake] = []
    for (key, value) in file.entries {
      if let name = Name(rawValue: key) {
        values[name] = value.text
      } else {
        let hint = NearestName.of(key, among: Name.allCases.map(\.rawValue)).map { "; \($0) is the nearest one" } ?? ""
        var mistake = SettingsMistake(key: key, expectation: "is not a known key\(hint)")
        mistake.place = .file(path, line: value.line)
        unknown.append(mistake)
      }
    }
    return (values, file.mistakes + unknown.sorted { $0.key < $1.key })
  }

  /// Whether credentials are safe on the way to the URL.
  private static func isProtected(_ text: String) -> Bool {
    guard let url = URL(string: text), let host = url.host, !host.isEmpty, url.user == nil, url.query == nil else {
      return false
    }
    switch url.scheme {
    case "https": return true
    case "http": return ["127.0.0.1", "::1", "[::1]", "localhost"].contains(host)
    default: return false
    }
  }
}

extension Profile: CustomStringConvertible, CustomReflectable {
  /// Omits the credentials.
  var description: String { url }
  var customMirror: Mirror { Mirror(self, children: ["url": url]) }
}
