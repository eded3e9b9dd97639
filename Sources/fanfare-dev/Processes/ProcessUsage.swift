import Foundation

/// The CPU time and memory of a process.
struct ProcessUsage: Sendable {
  /// User and system time in seconds, in steps of hundredths.
  var cpuSeconds: Double
  /// The CPU time of its child processes that have ended.
  var endedChildrenCPUSeconds: Double
  /// The instructions in user mode since they were first asked for; nil where they cannot be counted.
  var instructions: Int?
  /// The peak of resident memory, in bytes.
  var peakBytes: Int
  /// The resident memory, in bytes.
  var residentBytes: Int

  /// Reads `/proc`, see proc_pid_stat(5) and proc_pid_status(5). Throws when the process is gone.
  init(of id: Int32 = getpid(), instructions: InstructionCounter = .own) throws {
    self.instructions = instructions.count
    let stat = try String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)
    // The program's name, in parentheses, may contain spaces and parentheses.
    let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
    guard fields.count > 15 else { throw CocoaError(.fileReadCorruptFile) }
    let times = fields[12...15].compactMap { Double($0) }
    guard times.count == 4 else { throw CocoaError(.fileReadCorruptFile) }
    let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
    cpuSeconds = (times[0] + times[1]) / ticks
    endedChildrenCPUSeconds = (times[2] + times[3]) / ticks
    (peakBytes, residentBytes) = (0, 0)
    for line in try String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8).split(separator: "\n") {
      let words = line.split { $0 == ":" || $0 == "\t" || $0 == " " }
      guard words.count >= 2, let kibibytes = Int(words[1]) else { continue }
      if words[0] == "VmHWM" { peakBytes = kibibytes * 1024 }
      if words[0] == "VmRSS" { residentBytes = kibibytes * 1024 }
    }
  }
}
