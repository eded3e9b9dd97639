import FanfareCore
import Foundation

/// A file of lines for an import that grows piece by piece, with a note of the place that was reached beside it.
///
/// After a crash it continues after the last piece that is noted. Both files are readable only by their owner.
struct RegistrationSpool {
  /// The file belongs to another source, or cannot be used.
  struct Unusable: Error, CustomStringConvertible {
    let description: String
  }

  /// How far the source was read.
  struct Place: Codable, Equatable {
    /// What is read: the file continues with nothing else.
    let source: String
    /// The moment of all lines, in milliseconds since 1970: what devices report here later stays.
    let milliseconds: Int64
    /// The bytes of the file that are whole.
    var bytes: UInt64 = 0
    /// The lines.
    var count = 0
    /// The registrations of the source that were left out.
    var skipped = 0
    /// Where the source continues; nil at its beginning and its end.
    var continuation: String?
    var isComplete = false

    var time: UnixTime { UnixTime(milliseconds: milliseconds) }
  }

  let path: String
  private(set) var place: Place
  private let handle: FileHandle

  private static func note(_ path: String) -> String { "\(path).progress" }

  /// Opens the file, or continues with it if its note names the source.
  ///
  /// `time` is the moment of its lines; nil: now, or the moment of the first attempt.
  init(path: String, source: String, asOf time: UnixTime? = nil) throws {
    let manager = FileManager.default
    self.path = path
    place = Place(source: source, milliseconds: (time ?? SystemWallClock().now()).milliseconds)
    if let data = manager.contents(atPath: Self.note(path)) {
      let noted = try? JSONDecoder().decode(Place.self, from: data)  // A damaged note is reported below.
      guard let noted, noted.source == source else {
        throw Unusable(
          description: "\(Self.note(path)) belongs to another source; give another --spool or delete both files")
      }
      guard time == nil || time == noted.time else {
        throw Unusable(description: "\(path) was begun with --as-of \(noted.time); give the same or delete both files")
      }
      place = noted
    } else if manager.fileExists(atPath: path) {
      throw Unusable(description: "\(path) exists and is not the spool of an import that could continue")
    } else {
      guard manager.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
        throw Unusable(description: "\(path) cannot be created")
      }
    }
    do { handle = try FileHandle(forUpdating: URL(fileURLWithPath: path)) } catch {
      throw Unusable(description: "\(path) cannot be written")
    }
    guard try handle.seekToEnd() >= place.bytes else {
      throw Unusable(description: "\(path) is shorter than its note tells; delete both files")
    }
    // Complete files keep their time of change, which is part of an import's identity.
    if !place.isComplete {
      try handle.truncate(atOffset: place.bytes)
      try note()
    }
  }

  /// Appends lines, and notes where the source continues; nil at its end.
  mutating func append(_ lines: [UInt8], count: Int, skipped: Int, continuation: String?) throws {
    try handle.write(contentsOf: lines)
    try handle.synchronize()
    place.bytes += UInt64(lines.count)
    place.count += count
    place.skipped += skipped
    place.continuation = continuation
    place.isComplete = continuation == nil
    try note()
  }

  private func note() throws {
    let file = Self.note(path)
    try JSONEncoder().encode(place).write(to: URL(fileURLWithPath: file), options: .atomic)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
  }

  /// Deletes both files.
  func delete() throws {
    try handle.close()
    for file in [Self.note(path), path] { try FileManager.default.removeItem(atPath: file) }
  }
}
