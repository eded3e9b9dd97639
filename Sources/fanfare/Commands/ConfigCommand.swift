import ArgumentParser
import Logging
import Roles
import SettingsTable

/// `fanfare config`
struct ConfigCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "The configuration of a deployment.", subcommands: [Check.self])

  /// `fanfare config check`
  struct Check: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "check",
      abstract: "Names all mistakes of the configuration.",
      discussion: """
        Reads the configuration as the roles do when they start, with the files that it names: certificates, keys, \
        passwords, groups. Contacts nothing and changes nothing; `fanfare doctor` also looks at what the configuration \
        points to. One line for each mistake: the file with the line or the environment variable, the key, what is \
        expected, and the value unless it could be a secret. Status 0 without mistakes, otherwise 78. With --json one \
        object: mistakes, with file, line, variable, key, expected and value; and unknownVariables.
        """)

    @OptionGroup var common: CommonOptions

    @Option(help: "Only what this role needs, instead of all roles; repeatable.")
    var role: [ConfigurationCheck.Role] = []

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    func run() async throws {
      let roles = role.isEmpty ? ConfigurationCheck.Role.allCases : role
      let report = try await ConfigurationCheck(
        file: common.file, environment: common.environment, roles: Set(roles), logger: .silent
      ).run()
      if json {
        try Console.print(
          json: ConfigReport(
            mistakes: report.mistakes.map(ConfigReport.Mistake.init), unknownVariables: report.unknownVariables))
      } else {
        for mistake in report.mistakes { Console.print(mistake.line) }
        for name in report.unknownVariables { Console.print("\(name) is not a known environment variable") }
        let count = report.mistakes.count
        Console.print(count == 0 ? "No mistakes." : "\(count) mistake\(count == 1 ? "" : "s").")
      }
      if !report.mistakes.isEmpty { throw ExitCode(78) }
    }
  }
}

extension ConfigurationCheck.Role: ExpressibleByArgument {}

extension Logger {
  /// A logger for commands that print their findings themselves.
  static var silent: Logger { Logger(label: "fanfare", factory: { _ in SwiftLogNoOpLogHandler() }) }
}

/// The output of `fanfare config check --json`.
struct ConfigReport: Encodable {
  struct Mistake: Encodable {
    let key: String
    let expected: String
    let value: String?
    var file: String?
    var line: Int?
    var variable: String?

    init(_ mistake: SettingsMistake) {
      (key, expected, value) = (mistake.key, mistake.expectation, mistake.value)
      switch mistake.place {
      case .file(let path, let line): (file, self.line) = (path, line)
      case .variable(let name): variable = name
      case nil: break
      }
    }
  }

  let mistakes: [Mistake]
  let unknownVariables: [String]
}
