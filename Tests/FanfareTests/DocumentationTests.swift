import Foundation
import Roles
import Testing

/// Checks the README and the articles of the DocC catalogue: links, paths and widths.
@Suite struct DocumentationTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let catalogue = root.appending(path: "Sources/fanfare/Documentation.docc")

  private static func pages() throws -> [URL] {
    let articles = try FileManager.default.contentsOfDirectory(at: catalogue, includingPropertiesForKeys: nil)
    return [root.appending(path: "README.md")]
      + articles.filter { $0.pathExtension == "md" }.sorted { $0.path < $1.path }
  }

  private static func text(_ page: URL) throws -> String { try String(contentsOf: page, encoding: .utf8) }

  /// The anchors that a code-hosting site derives from the headings of a page.
  private static func anchors(_ page: URL) throws -> Set<String> {
    let headings = try text(page).split(separator: "\n").filter { $0.hasPrefix("#") }
    return Set(
      headings.map { heading in
        heading.drop { $0 == "#" || $0 == " " }.lowercased()
          .filter { $0.isLetter || $0.isNumber || " -_".contains($0) }.replacing(" ", with: "-")
      })
  }

  @Test func everyRelativeLinkLeadsSomewhere() throws {
    var links = 0
    for page in try Self.pages() {
      for match in try Self.text(page).matches(of: /\]\(([^)\s]+)\)/) {
        let target = String(match.output.1)
        guard !target.contains("://") else { continue }
        links += 1
        let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let file = parts[0].isEmpty ? page : page.deletingLastPathComponent().appending(path: parts[0]).standardized
        try #require(
          FileManager.default.fileExists(atPath: file.path), "\(page.lastPathComponent) links to \(target)")
        guard parts.count == 2 else { continue }
        #expect(
          try Self.anchors(file).contains(parts[1]), "\(page.lastPathComponent) links to \(target): no such heading")
      }
    }
    #expect(links > 10)
  }

  @Test func everyNamedPathExists() throws {
    var paths = 0
    for page in try Self.pages() {
      for match in try Self.text(page).matches(of: /\b(?:Sources|Tests|deploy)\/[A-Za-z0-9_+.\/-]*[A-Za-z0-9]/) {
        paths += 1
        let path = Self.root.appending(path: String(match.output)).path
        #expect(FileManager.default.fileExists(atPath: path), "\(page.lastPathComponent) names \(match.output)")
      }
    }
    #expect(paths > 10)
  }

  @Test(arguments: [
    "README.md", "Sources/fanfare/Documentation.docc/Installation.md", "Sources/fanfare/Documentation.docc/Changes.md",
    "deploy/kubernetes/base/kustomization.yaml",
  ])
  func newestVersionIsTheProgramsOwn(file: String) throws {
    let version = try Self.text(Self.root.appending(path: file))
      .firstMatch(of: /(?:Fanfare |fanfare_|newTag: |## )(\d+\.\d+\.\d+)/)
    #expect(version?.output.1 == Build.version[...])
  }

  @Test func linesHaveAtMost120Columns() throws {
    for page in try Self.pages() {
      let lines = try Self.text(page).split(separator: "\n", omittingEmptySubsequences: false)
      for (index, line) in lines.enumerated() where line.count > 120 {
        Issue.record("\(page.lastPathComponent):\(index + 1) has \(line.count) columns")
      }
      #expect(page.lastPathComponent != "README.md" || lines.count <= 151)
    }
  }

  @Test func everyArticleIsLinkedFromTheReadMe() throws {
    let readMe = try Self.text(Self.root.appending(path: "README.md"))
    for page in try Self.pages().dropFirst() {
      #expect(readMe.contains("Documentation.docc/\(page.lastPathComponent)"), "\(page.lastPathComponent)")
    }
  }
}
