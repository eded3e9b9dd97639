package import Foundation
package import Testing

/// A file in the folder `Golden` beside a test: data that an earlier release wrote and this one must still read.
///
/// With `FANFARE_WRITE_GOLDEN=1` in the environment the tests write their golden files anew from the present code
/// before they read them. That is right only where a format is meant to change.
package struct GoldenFile {
  package let url: URL

  /// The file of that name; `test` is the path of the test's source file.
  package init(_ name: String, test: String = #filePath) {
    url = URL(fileURLWithPath: test).deletingLastPathComponent().appending(path: "Golden").appending(path: name)
  }

  /// Whether the present code writes the golden files anew.
  package static let isWritten = ProcessInfo.processInfo.environment["FANFARE_WRITE_GOLDEN"] == "1"

  /// The file's lines, without the last newline; `present` makes them where the file is to be written anew.
  package func lines(_ present: () throws -> [String]) throws -> [String] {
    if Self.isWritten { try Data(present().map { $0 + "\n" }.joined().utf8).write(to: url, options: .atomic) }
    let text = String(decoding: try Data(contentsOf: url), as: UTF8.self)
    return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
  }

  /// Expects each value to be written exactly as its line in the file, and the line to be read as the value.
  package func holds<Value: Equatable>(
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

  /// Expects the texts to be the file's lines.
  package func holds(_ present: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let lines = try lines { present }
    #expect(lines.count == present.count, sourceLocation: sourceLocation)
    for (line, text) in zip(lines, present) { #expect(text == line, sourceLocation: sourceLocation) }
  }
}
