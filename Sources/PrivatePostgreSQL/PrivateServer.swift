import Foundation

/// A temporary PostgreSQL server for tests and benchmarks: Debian's programs with a data directory of its own, reached
/// through a Unix socket in it.
///
/// It ends with this object or with this process, however that ends, and its directory is removed. It does not sync to
/// disk by default, so its data does not survive a crash of the machine.
package final class PrivateServer: Sendable {
  /// The reason why no server was started.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// The connection string of a superuser.
  package let connection: String
  /// Standard input of the script, which ends the server when it closes. Nothing is written to it.
  private let lifeline: FileHandle

  /// Runs the server until its standard input ends. It ignores the signals that a terminal sends to all its processes.
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

  /// The folder with the programs of the latest version; nil if none is installed.
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
      // The server refuses to run as root.
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
      // Without a log the message is empty.
      let log = (try? String(contentsOf: directory.appending(path: "log"), encoding: .utf8)) ?? ""
      throw Failure(description: "PostgreSQL's server did not start: \(log.suffix(1000))")
    }
  }

  deinit {
    // Closing cannot fail in a way that leaves it open.
    try? lifeline.close()
  }
}
