import FanfareCore
import Operations

/// Something that is wrong now, in words, with what to do about it.
struct Finding: Encodable, Hashable, Sendable {
  enum Level: String, Encodable, Sendable, CaseIterable {
    /// Sends are not delivered, or results are not recorded.
    case critical
    /// Becomes critical without action.
    case warning
    /// Worth knowing.
    case notice
  }

  let level: Level
  let text: String
  let remedy: String

  /// All findings, the worst first.
  static func all(
    hub: String, members: [PulseBoard.Member], waiting: [PulseSnapshot.Waiting], outcomes: [PulseSnapshot.Outcome],
    deadLetters: [PulseSnapshot.DeadLetters], circuits: [PulseSnapshot.Circuit], expiries: [PulseSnapshot.Expiry],
    metrics: [PulseSnapshot.Metric], at now: UnixTime
  ) -> [Finding] {
    let open = circuits.filter { $0.state > 0 }
    let places = open.map { "\(hub)/\($0.platform): " }
    var findings = aboutProcesses(members, metrics, in: hub, besides: places, at: now)
    for (circuit, place) in zip(open, places) {
      var causes: [Substring] = []
      for problem in members.flatMap({ $0.problems(in: hub) }) where problem.problem.hasPrefix(place) {
        let cause = problem.problem.dropFirst(place.count)
        if causes.count < 3, !causes.contains(cause) { causes.append(cause) }
      }
      let cause = causes.isEmpty ? "" : ": " + causes.joined(separator: "; ")
      findings.append(
        Finding(
          level: .critical,
          text: "The circuit of \(circuit.platform) is open at \(circuit.openAt) of \(circuit.workers) workers, its "
            + "sends are deferred\(cause).",
          remedy: cause.contains("refuses")
            ? "Compare key, ids and topic or project under hub.\(hub).\(circuit.platform) with the service's console. "
              + "Workers take over a changed file of a credential by themselves; other keys need a restart."
            : "See the service's status page, then the way there: proxy, firewall, DNS. `fanfare doctor` on a worker's "
              + "machine tries a push. The circuit closes by itself when the service answers again."))
    }
    // Segments of a paused or slow broadcast wait on purpose.
    for entry in waiting where entry.oldestSeconds > 60 && !entry.topic.hasSuffix(".segments") {
      findings.append(
        Finding(
          level: entry.oldestSeconds > 600 ? .critical : .warning,
          text: "The oldest record of \(entry.topic) has waited for \(Int(clamping: entry.oldestSeconds)) s, with "
            + "\(Int(clamping: entry.records)) records behind it.",
          remedy: "Start more processes of the role \(entry.role), up to the number of partitions; look for an open "
            + "circuit, a quota or a slow database first."))
    }
    for expiry in expiries {
      let days = (UnixTime(milliseconds: expiry.expiresAt) - now) / .seconds(86_400)
      guard days < 14 else { continue }
      let subject =
        expiry.subject == "certificate" ? "The listener's certificate" : "The credential of \(expiry.subject)"
      // Access tokens live for an hour and are renewed by themselves.
      if days > 0, days < 2, expiry.subject != "certificate" { continue }
      findings.append(
        Finding(
          level: days <= 0 ? .critical : .warning,
          text: days <= 0
            ? "\(subject) has expired." : "\(subject) expires in \(Int(clamping: days.rounded(.up))) days.",
          remedy: "Replace the file that the configuration names; a running process takes it over without a restart."))
    }
    findings += aboutResults(outcomes, deadLetters)
    let silent = members.count { !($0.hubs?.contains(hub) ?? true) }
    if silent > 0 {
      findings.append(
        Finding(
          level: .notice,
          text: "The figures of this hub are incomplete: \(silent) of \(members.count) processes serve so many hubs "
            + "that they report only the busiest ones.",
          remedy: "The processes' /metrics have the figures of all hubs."))
    }
    for metric in metrics where metric.name == SeriesTable.Use.senderMissing.rawValue && metric.value > 0 {
      findings.append(
        Finding(
          level: .warning,
          text: "Devices of \(metric.labels["platform"] ?? "a platform") are registered, but no worker has credentials "
            + "for it; their sends wait in the retry topics.",
          remedy: "Configure the platform's credentials under hub.\(metric.labels["hub"] ?? "NAME"), or remove the "
            + "devices."))
    }
    let order = Level.allCases
    return findings.sorted {
      (order.firstIndex(of: $0.level) ?? 0, $0.text) < (order.firstIndex(of: $1.level) ?? 0, $1.text)
    }
  }

  private static func aboutProcesses(
    _ members: [PulseBoard.Member], _ metrics: [PulseSnapshot.Metric], in hub: String, besides places: [String],
    at now: UnixTime
  ) -> [Finding] {
    var findings: [Finding] = []
    let active = members.filter { !$0.isSilent(at: now) }
    let hasWorker = metrics.contains { $0.name == SeriesTable.Use.sendsInFlight.rawValue }
    if !active.contains(where: { $0.process.role == "worker" }), !hasWorker {
      findings.append(
        Finding(
          level: .critical, text: "No worker reports: sends are accepted and wait in Kafka.",
          remedy: "Start `fanfare worker`. Nothing is lost meanwhile, but a send expires after its time to live."))
    }
    if !active.contains(where: { $0.process.role == "ledger" || $0.process.role == "demo" }) {
      findings.append(
        Finding(
          level: .warning, text: "No ledger reports: the state of sends on this page and in the API is old.",
          remedy: "Start `fanfare ledger`. It catches up from Kafka."))
    }
    for member in members {
      let process = member.process
      let name = "\(process.role) \(process.pid) on \(process.host)"
      if member.isSilent(at: now) {
        findings.append(
          Finding(
            level: .warning, text: "The \(name) has fallen silent without saying that it stops.",
            remedy: "See whether it was killed or its machine is unreachable. Others take its partitions over."))
        continue
      }
      let others = member.problems(in: hub).filter { problem in !places.contains { problem.problem.hasPrefix($0) } }
      for (check, problems) in Dictionary(grouping: others, by: \.check) {
        findings.append(
          Finding(
            level: .critical,
            text: "The \(name) is not ready: \(check): \(problems.map(\.problem).joined(separator: "; "))",
            remedy: "The Operations article lists the causes under `\(check)`; `fanfare doctor` on its machine "
              + "checks them."))
      }
    }
    let versions = Set(active.map(\.process.version)).sorted()
    if versions.count > 1 {
      findings.append(
        Finding(
          level: .notice, text: "Processes of \(versions.count) versions run: \(versions.joined(separator: ", ")).",
          remedy: "That is so during an upgrade; otherwise upgrade the others."))
    }
    return findings
  }

  private static func aboutResults(
    _ outcomes: [PulseSnapshot.Outcome], _ deadLetters: [PulseSnapshot.DeadLetters]
  ) -> [Finding] {
    var findings: [Finding] = []
    for (platform, all) in Dictionary(grouping: outcomes, by: \.platform) {
      let total = all.reduce(0) { $0 + $1.quarterHour }
      let failures = all.filter { $0.outcome != "delivered" }
      let failed = failures.reduce(0) { $0 + $1.quarterHour }
      guard total >= 100, failed / total > 0.2, let worst = failures.max(by: { $0.quarterHour < $1.quarterHour }) else {
        continue
      }
      findings.append(
        Finding(
          level: .warning,
          text: "\(Int(clamping: (failed / total * 100).rounded())) % of the pushes to \(platform) in the last 15 "
            + "minutes were not delivered, most of them: \(worst.reason.isEmpty ? worst.outcome : worst.reason).",
          remedy: "The reason is the service's own word; look it up in its documentation. Pause a broadcast that "
            + "causes it."))
    }
    let dead = deadLetters.reduce(0) { $0 + $1.quarterHour }
    if dead > 0 {
      let reasons = deadLetters.map { "\($0.reason) \(Int(clamping: $0.quarterHour))" }.joined(separator: ", ")
      findings.append(
        Finding(
          level: .warning,
          text: "\(Int(clamping: dead)) records became dead letters in the last 15 minutes: \(reasons).",
          remedy: "See the page Dead letters: mend the cause, then redrive them."))
    }
    return findings
  }
}
