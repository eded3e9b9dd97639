import Foundation
import Testing

@testable import fanfare

@Suite struct ReplacedFileTests {
  /// Runs `body` with the path of a new directory, and asserts that no partial file is left there.
  private func withDirectory(_ body: (String) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-replaced-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
    try body(directory.path)
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    #expect(!names.contains { $0.hasSuffix(".partial") }, "\(names)")
  }

  private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

  private func replace(_ path: String, with text: String) throws {
    let file = try ReplacedFile(path: path)
    try file.write(Array(text.utf8))
    try file.finish()
  }

  @Test func oldFileStaysUntilNewOneIsComplete() throws {
    try withDirectory { directory in
      let path = "\(directory)/file"
      try "old".write(toFile: path, atomically: true, encoding: .utf8)
      let file = try ReplacedFile(path: path)
      try file.write(Array("new".utf8))
      #expect(try text(path) == "old")
      try file.finish()
      #expect(try text(path) == "new")
      let abandoned = try ReplacedFile(path: path)
      try abandoned.write(Array("newer".utf8))
      abandoned.abandon()
      #expect(try text(path) == "new")
    }
  }

  @Test func targetOfSymbolicLinkIsReplaced() throws {
    try withDirectory { directory in
      let files = FileManager.default
      try files.createDirectory(atPath: "\(directory)/folder", withIntermediateDirectories: true)
      try "old".write(toFile: "\(directory)/folder/file", atomically: true, encoding: .utf8)
      try files.createSymbolicLink(atPath: "\(directory)/near", withDestinationPath: "folder/file")
      try files.createSymbolicLink(atPath: "\(directory)/folder/far", withDestinationPath: "\(directory)/near")
      try replace("\(directory)/folder/far", with: "new")
      #expect(try text("\(directory)/folder/file") == "new")
      #expect(try files.destinationOfSymbolicLink(atPath: "\(directory)/near") == "folder/file")
      #expect(try files.destinationOfSymbolicLink(atPath: "\(directory)/folder/far") == "\(directory)/near")
      try files.createSymbolicLink(atPath: "\(directory)/nowhere", withDestinationPath: "folder/other")
      try replace("\(directory)/nowhere", with: "first")
      #expect(try text("\(directory)/folder/other") == "first")
    }
  }

  @Test func irregularFileIsRefused() throws {
    try withDirectory { directory in
      let files = FileManager.default
      try files.createDirectory(atPath: "\(directory)/folder", withIntermediateDirectories: true)
      for (name, destination) in [("folder-link", "folder"), ("null-link", "/dev/null"), ("circle", "circle")] {
        try files.createSymbolicLink(atPath: "\(directory)/\(name)", withDestinationPath: destination)
      }
      for path in ["folder", "folder-link", "null-link", "circle"].map({ "\(directory)/\($0)" }) + ["/dev/null"] {
        #expect(throws: ReplacedFile.Irregular.self, "\(path)") { try ReplacedFile(path: path).abandon() }
      }
    }
  }

  @Test func missingFolderHasItsOwnError() throws {
    #expect(throws: CocoaError.self) { try ReplacedFile(path: "/nonexistent/file").abandon() }
  }
}
