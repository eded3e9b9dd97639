import Foundation

/// A PostgreSQL server for tests, benchmarks and demonstrations: Debian's, with a data directory of its own and reached
/// through a socket in it.
///
/// It ends, and its directory goes, with this object or with this process, however that ends. Nothing that it holds
/// survives a crash of the machine: it is told not to wait for the disk.
package final class PrivateServer: Sendable {
  /// Why there is none.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// What connects to its database, as a superuser.
  package let connection: String
  /// Nothing is ever written to it. When it closes, the script ends the server.
  private let lifeline: FileHandle

  /// Waits for its standard input to end, and takes the server with it. Signals that a terminal sends to all its
  /// processes are not for it.
  private static let script = """
    trap '' INT TERM HUP
    bin=$1 directory=$2
    shift 2
    "$bin/initdb" -D "$directory/data" -U fanfare -A trust -E UTF8 --locale=C --no-sync >"$directory/log" 2>&1 &&
    "$bin/pg_ctl" -D "$directory/data" -l "$directory/log" -w -t 60 -o "$*" start >>"$directory/log" 2>&1 &&
    echo ready || echo failed
    cat >/dev/null
    "$bin/pg_ctl" -D "$directory/data" -m immediate stop >/dev/null 2>&1
    rm -rf "$directory"
    """

  /// The folder with the server's programs, the latest version's; nil where it is not installed.
  package static var programs: String? {
    let root = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []  // None: not installed.
    return versions.compactMap(Int.init).sorted().map { "\(root)/\($0)/bin" }.last {
      FileManager.default.isExecutableFile(atPath: $0 + "/initdb")
    }
  }

  /// Starts a server, which takes about two seconds and blocks the thread. `settings` are as in `postgresql.conf`,
  /// without spaces.
  package init(settings: [String: String] = [:], in parent: String = NSTemporaryDirectory()) throws {
    guard let programs = Self.programs else {
      throw Failure(description: "PostgreSQL's server is not installed (Debian: postgresql)")
    }
    let directory = URL(fileURLWithPath: parent).appending(path: "fanfare-postgresql-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    var command = ["/bin/sh", "-c", Self.script, "sh", programs, directory.path]
    if geteuid() == 0 {
      // It refuses to run as root.
      try FileManager.default.setAttributes([.ownerAccountName: "postgres"], ofItemAtPath: directory.path)
      command.insert(contentsOf: ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"], at: 0)
    }
    let defaults = [
      "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "500",
      "listen_addresses": "''",
      "unix_socket_directories": directory.path, "max_wal_size": "4GB", "jit": "off",
    ]
    command += defaults.merging(settings) { $1 }.sorted { $0.key < $1.key }.map { "-c \($0.key)=\($0.value)" }
    let (input, output) = (Pipe(), Pipe())
    let process = Process()
    process.executableURL = URL(fileURLWithPath: command[0])
    process.arguments = Array(command.dropFirst())
    process.currentDirectoryURL = directory
    process.environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C"]
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    lifeline = input.fileHandleForWriting
    connection = "host=\(directory.path) user=fanfare dbname=postgres"
    guard output.fileHandleForReading.availableData.starts(with: Data("ready".utf8)) else {
      let log = (try? String(contentsOf: directory.appending(path: "log"), encoding: .utf8)) ?? ""  // Then there is none.
      throw Failure(description: "PostgreSQL's server did not start: \(log.suffix(1000))")
    }
  }

  deinit {
    // Closing cannot fail in a way that leaves it open.
    try? lifeline.close()
  }
}
