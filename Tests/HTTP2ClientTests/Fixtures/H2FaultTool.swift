import Foundation

/// Where the misbehaving server is, and whether it can run.
enum H2FaultTool {
  /// The path of the tool.
  static let path =
    ProcessInfo.processInfo.environment["FANFARE_H2FAULT"]
    ?? URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../../shared/tools/h2fault.py")
    .standardizedFileURL.path

  /// The Python interpreter, nil if there is none.
  static let python = ChildProcess.find("python3")

  /// Whether the tool, Python and the package it needs are there.
  static let isAvailable: Bool = {
    guard let python, FileManager.default.fileExists(atPath: path) else { return false }
    return ChildProcess.succeeds(python, ["-c", "import h2"])
  }()
}
