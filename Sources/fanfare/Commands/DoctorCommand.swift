import ArgumentParser
import Logging
import Roles

/// `fanfare doctor`
struct DoctorCommand: ConfiguredCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Checks a deployment from where it stands, and says how to mend what is wrong.",
    discussion: """
      Run it on the machine and as the user of a role. It checks the configuration and the files that it names, Kafka \
      with topics, rights and the workers' group, the databases with schema, indexes and dead rows, the push services \
      by a push to a device that does not exist, clocks, certificates, disks, and the limit of open files. It changes \
      nothing, and nobody gets a notification.

      One line for each finding, and below it the remedy. Status 0 without anything wrong (warnings do not count), 1 if \
      something is wrong, 78 if the configuration has mistakes. With --json one object: findings, with area, level \
      (ok, warning or wrong), detail and remedy; and isMisconfigured.
      """)

  @OptionGroup var common: CommonOptions

  @Option(help: "Only what this role needs, instead of all roles; repeatable.")
  var role: [ConfigurationCheck.Role] = []

  @Option(help: ArgumentHelp("The limit of each request, from 1s to 5m.", valueName: "time"))
  var timeout = SpanArgument(.seconds(10))

  @Flag(help: "Print one JSON object instead of text.")
  var json = false

  @Flag(help: "Print only what is wrong and the warnings.")
  var quiet = false

  func validate() throws {
    guard timeout.duration >= .seconds(1), timeout.duration <= .seconds(300) else {
      throw ValidationError("--timeout must be from 1s to 5m")
    }
  }

  func run() async throws {
    let report = try await Doctor(
      file: common.file, environment: common.environment,
      roles: Set(role.isEmpty ? ConfigurationCheck.Role.allCases : role), patience: timeout.duration, logger: .silent
    ).run()
    if json {
      try Console.print(json: report)
    } else {
      for finding in report.findings where !quiet || finding.level != .ok {
        for line in finding.lines { Console.print(Printable.line(line)) }
      }
    }
    if report.isMisconfigured { throw ExitCode(78) }
    if report.worst == .wrong { throw ExitCode.failure }
  }
}
