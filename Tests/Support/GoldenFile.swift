package import Foundation
package import Testing

/// A file in the folder `Golden` beside a test: data that an earlier release wrote and this one must still read.
///
/// With `FANFARE_WRITE_GOLDEN=1` in the environment the tests replace their golden files with the output of the present
/// code before they read them. Do that only when a format is meant to change.
package struct GoldenFile {
  package let url: URL

  /// The file with that name; `test` is the path of the test's source file.
  package init(_ name: String, test: String = #filePath) {
    url = URL(fileURLWithPath: test).deletingLastPathComponent().appending(path: "Golden").appending(path: name)
  }

  /// Whether tests replace the golden files.
  package static let isUpdating = ProcessInfo.processInfo.environment["FANFARE_WRITE_GOLDEN"] == "1"

  /// The file's lines; `present` makes the new ones when the file is replaced.
  package func lines(_ present: () throws -> [String]) throws -> [String] {
    if Self.isUpdating { try Data(present().map { $0 + "\n" }.joined().utf8).write(to: url, options: .atomic) }
    let text = String(decoding: try Data(contentsOf: url), as: UTF8.self)
    return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
  }

  /// Expects each value to be encoded exactly as its line in the file, and the line to be decoded as the value.
  package func expect<Value: Equatable>(
    _ values: [Value], write: (Value) throws -> [UInt8], read: (ArraySlice<UInt8>) throws -> Value,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let lines = try lines { try values.map { String(decoding: try write($0), as: UTF8.self) } }
    #expect(lines.count == values.count, sourceLocation: sourceLocation)
    for (line, value) in zip(lines, values) {
      #expect(String(decoding: try write(value), as: UTF8.self) == line, sourceLocation: sourceLocation)
      #expect(try read(Array(line.utf8)[...]) == value, "\(line)", sourceLocation: sourceLocation)
    }
  }

  /// Expects the lines to be those of the file.
  package func expect(_ present: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let lines = try lines { present }
    #expect(lines.count == present.count, sourceLocation: sourceLocation)
    for (line, text) in zip(lines, present) { #expect(text == line, sourceLocation: sourceLocation) }
  }
}
