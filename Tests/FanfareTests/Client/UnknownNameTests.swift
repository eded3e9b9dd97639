import Foundation
import Roles
import Testing

@testable import fanfare

/// Mistyped options and commands.
@Suite struct UnknownNameTests {
  private func found(_ line: String) -> String? {
    UnknownName.find(in: line.split(separator: " ").map(String.init)[...], of: Fanfare.self, named: "fanfare")?.words
  }

  @Test(arguments: [
    ("wroker", "Unknown command 'wroker'. Did you mean 'worker'?"),
    ("azure imprt --file x", "Unknown command 'imprt'. Did you mean 'import'?"),
    ("send --usr bob --title x", "Unknown option '--usr'. Did you mean '--user'?"),
    ("send --titel=secret", "Unknown option '--titel'. Did you mean '--title'?"),
    ("worker --confg x.yaml", "Unknown option '--confg'. Did you mean '--config'?"),
    ("xyzzyxyzzy", "Unknown command 'xyzzyxyzzy'"), ("send --xyzzyxyzzy", "Unknown option '--xyzzyxyzzy'"),
  ])
  func nearestNameIsSuggested(line: String, expected: String) {
    #expect(found(line) == expected)
  }

  @Test(arguments: [
    "", "worker --config x.yaml", "send --user bob --title wroker", "azure import", "help wroker", "--version",
    "send -- --usr", "templates put a -",
  ])
  func knownNamesAreNotNamed(line: String) {
    #expect(found(line) == nil)
  }

  @Test func commandThatLacksTheOptionIsNamed() {
    #expect(
      UnknownName.find(in: ["azure", "import", "--fiel", "x"], of: Fanfare.self, named: "fanfare")?.command
        == "fanfare azure import")
  }

  @Test(arguments: ["", "[]", "{", "text"])
  func fileThatIsNoTemplateIsNoMistakeOfTheCommandLine(text: String) {
    #expect(throws: TemplatesCommand.Put.UnusableFile.self) {
      try TemplatesCommand.Put.body(Data(text.utf8), named: "t.json")
    }
  }

  @Test func clientsThatCannotUseAConnectionStringAreNamed() {
    func notes(_ prefix: [String], _ isPlain: Bool) -> [String] {
      AzureCommand.ConnectionString.excludedClients(prefix: prefix, isPlain: isPlain)
    }
    #expect(notes([], false).isEmpty)
    for (prefix, isPlain) in [(["azure"], false), ([], true)] {
      let excluded = notes(prefix, isPlain)
      #expect(excluded.count == 1 && excluded[0].contains(".NET") && excluded[0].contains("JavaScript"))
    }
    #expect(notes(["azure"], true).count == 2)
  }
}
