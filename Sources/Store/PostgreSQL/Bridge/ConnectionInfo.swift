import CPQ
import Glibc

/// libpq's parser of connection strings.
enum ConnectionInfo {
  /// The parameters that a connection string contains. Throws `configuration` without repeating any part of the string,
  /// which may hold a password.
  static func parse(_ text: String) throws(PostgreSQLError) -> [String: String] {
    guard !text.utf8.contains(0), let options = unsafe PQconninfoParse(text, nil) else {
      throw PostgreSQLError(.configuration, hint: "libpq cannot parse the connection string")
    }
    defer { unsafe PQconninfoFree(options) }
    var words: [String: String] = [:]
    var next = unsafe options
    while let keyword = unsafe next.pointee.keyword {
      if let value = unsafe next.pointee.val { unsafe words[String(cString: keyword)] = unsafe String(cString: value) }
      unsafe next += 1
    }
    return words
  }

  /// Whether a connection with the parameters may leave this machine: any of its hosts is neither a Unix socket nor a
  /// loopback address. A name counts as another machine, whatever it resolves to, except `localhost`.
  static func usesNetwork(_ words: [String: String]) -> Bool {
    // libpq takes the hosts from the environment, too.
    let hosts = words["host"] ?? environment("PGHOST")
    let addresses = words["hostaddr"] ?? environment("PGHOSTADDR")
    // A service file may name any host.
    if hosts == nil, addresses == nil { return words["service"] != nil || environment("PGSERVICE") != nil }
    return [hosts, addresses].compactMap(\.self).contains { list in
      list.split(separator: ",", omittingEmptySubsequences: false).contains { !isLocal($0) }
    }
  }

  /// Whether a host is a socket's directory or an abstract socket, absent (the default socket), or loopback.
  private static func isLocal(_ host: Substring) -> Bool {
    if host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") { return true }
    if host.lowercased() == "localhost" || host == "::1" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  /// The system's trusted roots, for a connection whose parameters name none; nil if the environment or libpq's own
  /// file has some. Not `system`, which libpq knows only from version 16 on.
  static func systemRoots() -> String? {
    if environment("PGSSLROOTCERT") != nil { return nil }
    if let home = environment("HOME"), isReadable(home + "/.postgresql/root.crt") { return nil }
    return bundles.first(where: isReadable)
  }

  /// Where distributions keep the roots: Debian, Fedora, Alpine and openSUSE.
  private static let bundles = [
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
  ]

  private static func isReadable(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }

  /// A variable of the environment; nil if it is empty.
  private static func environment(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }
}
