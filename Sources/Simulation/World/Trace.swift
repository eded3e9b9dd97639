import Worker

/// The history of a world, a line for each event, and a digest of it: two runs with the same digest had the same
/// history.
///
/// `@unchecked Sendable`: it belongs to a `World`, and is used on that world's thread.
package final class Trace: @unchecked Sendable {
  /// FNV-1a of all lines and their times.
  package private(set) var digest = FNV1a()
  private let write: ((String) -> Void)?
  private let recording: Recording?
  private var line: [UInt8] = []

  /// `write` is given every line, and `recording` every event; nil for both: only the digest is kept.
  package init(recording: Recording? = nil, write: ((String) -> Void)? = nil) {
    self.write = write
    self.recording = recording
  }

  /// Adds an event.
  func note(_ time: World.Time, _ event: Event) {
    line.removeAll(keepingCapacity: true)
    event.append(to: &line)
    for shift in stride(from: 0, to: 64, by: 8) { digest.add(UInt8(truncatingIfNeeded: time >> shift)) }
    for byte in line { digest.add(byte) }
    recording?.add(time, event)
    guard let write else { return }
    let microseconds = String(time % 1_000_000)
    let padding = String(repeating: "0", count: 6 - microseconds.count)
    write("\(time / 1_000_000).\(padding)\(microseconds) \(String(decoding: line, as: UTF8.self))")
  }

  /// Adds an event that has no kind of its own.
  func note(_ time: World.Time, _ text: String) { note(time, .note(text)) }

  /// Lets a recording keep a sample of the load of a process. Samples are no part of the history.
  func sample(_ time: World.Time, _ process: String, _ load: () -> WorkerLoad) {
    recording?.sample(time, process, load)
  }
}

/// The hash FNV-1a of 64 bits, which is the same in every process.
package struct FNV1a: Sendable {
  package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

  /// The hash of some bytes.
  static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var hash = FNV1a()
    for byte in bytes { hash.add(byte) }
    return hash.value
  }
}
