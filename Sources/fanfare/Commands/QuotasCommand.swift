import ArgumentParser
import FanfareCore
import Logging
import Registry
import Roles

/// `fanfare quotas`
struct QuotasCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "quotas", abstract: "Shows the quotas of callers and what they have used.", subcommands: [Show.self])

  /// `fanfare quotas show`
  struct Show: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "show",
      abstract: "Prints the use and the limit of each quota, by user.",
      discussion: """
        One line for each quota that a user has used: user, quota, use, limit. The use of a rate is what the front ends \
        have reserved and time has not given back; of a front end's own share, a hundredth of each rate, the database \
        does not know. Without --user all users with a use are listed, with it all quotas of that user. Limits are \
        those of this configuration. Needs registry.path or registry.postgres.url. With --json one object a line: hub, \
        user, quota, used, limit; a limit that does not exist is null.
        """)

    /// Users per query.
    private static let page = 500

    @OptionGroup var common: CommonOptions

    @Option(help: "Only this hub.")
    var hub: String?

    @Option(help: "Only this user, with all quotas.")
    var user: String?

    @Flag(help: "Print one JSON object a line instead of text.")
    var json = false

    func validate() throws {
      if let user, !UserName.isValid(user) { throw ValidationError("--user must be \(UserName.rule)") }
    }

    func run() async throws {
      let settings = try common.settings()
      let hubs = settings.hubs.filter { hub == nil || $0.name.rawValue == hub }
      guard !hubs.isEmpty else { throw ValidationError("--hub: there is no such hub in this deployment") }
      let store = try await settings.registry.open(
        role: "quotas", mustExist: true, logger: Logger(label: "fanfare.quotas"))
      let now = SystemWallClock().now()
      for hub in hubs {
        var last: String?
        var page: [QuotaUse]
        repeat {
          page = try await store.quotaUse(hub: hub.name, user: user, after: last, limit: Self.page, at: now)
          for use in page {
            for line in QuotaLine.lines(of: use, in: hub, limits: settings.registry, at: now) {
              guard user != nil || line.used > 0 else { continue }
              try Console.print(line, isJSON: json)
            }
          }
          last = page.last?.user
        } while user == nil && page.count == Self.page
      }
    }
  }
}

/// A quota of a user in the output of `fanfare quotas show`.
struct QuotaLine: OutputLine {
  let hub: String
  let user: String
  let quota: String
  let used: Int
  let limit: Int?

  /// The lines of a user in the order of the quotas.
  static func lines(
    of use: QuotaUse, in hub: HubSettings, limits registry: RegistrySettings, at now: UnixTime
  ) -> [QuotaLine] {
    let limits = hub.quotas.limits(of: use.user)
    func line(_ quota: String, _ used: Int, _ limit: Int) -> QuotaLine {
      QuotaLine(
        hub: hub.name.rawValue, user: use.user, quota: quota, used: used, limit: limit == 0 ? nil : limit)
    }
    return QuotaName.allCases.map { name in
      guard name.isRate else { return line(name.rawValue, use.stocks[name] ?? 0, limits.most(name)) }
      guard let rate = limits.rate(name) else { return line(name.rawValue, 0, 0) }
      return line(name.rawValue, rate.used(until: use.reservedUntil[name] ?? 0, at: now), rate.burst)
    } + [line("devicesOfUser", use.devices, registry.limits.maximumDevicesPerUser)]
  }

  /// Encodes an absent limit as null.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(hub, forKey: .hub)
    try container.encode(user, forKey: .user)
    try container.encode(quota, forKey: .quota)
    try container.encode(used, forKey: .used)
    try container.encode(limit, forKey: .limit)
  }

  private enum CodingKeys: CodingKey { case hub, user, quota, used, limit }

  /// The quota as a line of text.
  var text: String { "\(hub) \(user) \(quota) \(used) of \(limit.map { "\($0)" } ?? "no limit")" }
}
