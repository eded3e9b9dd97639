import FanfareCore
import FoundationEssentials
import Ledger
import PushSimulator

/// A stream of sends through the HTTP API's batch route, watched until all of them are settled.
struct Stream: Sendable {
  let sends: Int
  let users: Int
  let api: APIClient
  let simulator: PushSimulator
  let ledger: any LedgerStorage

  /// Runs it, with a progress line. Gives up waiting for the last ones when nothing has moved for a minute.
  func run() async throws -> StreamReport {
    let before = try await ledger.totals(hub: .default)
    let arrivedBefore = simulator.store.counts()
    Console.print("Sending \(sends) times to \(users) users …")
    let start = ContinuousClock.now
    async let posted = post()
    var report = StreamReport()
    var lastChange = start
    while true {
      try await Task.sleep(for: .milliseconds(Console.isTerminal ? 200 : 1000))
      let totals = try await ledger.totals(hub: .default)
      let counts = simulator.store.counts()
      var next = StreamReport(from: before, to: totals)
      next.arrived = counts.accepted - arrivedBefore.accepted
      next.duplicates = counts.duplicates - arrivedBefore.duplicates
      next.seconds = (ContinuousClock.now - start) / .seconds(1)
      if next.settled != report.settled { lastChange = .now }
      progress(next, since: report)
      report = next
      if report.settled >= sends || ContinuousClock.now - lastChange > .seconds(60) { break }
    }
    report.posted = try await posted
    if Console.isTerminal { Console.print() }
    return report
  }

  /// Posts all sends in batches of newline-delimited JSON, a few at a time. Returns how many were accepted.
  private func post() async throws -> Int {
    let batchSize = 250
    return try await withThrowingTaskGroup(of: Int.self) { group in
      var accepted = 0
      for (index, first) in stride(from: 0, to: sends, by: batchSize).enumerated() {
        if index >= 4 { accepted += try await group.next() ?? 0 }
        group.addTask { try await post(first..<min(first + batchSize, sends)) }
      }
      for try await count in group { accepted += count }
      return accepted
    }
  }

  private func post(_ numbers: Range<Int>) async throws -> Int {
    // Neighbouring sends go to different users, so that no user's order holds up the stream.
    let lines = numbers.map {
      #"{"to":{"user":"user-\#($0 % users)"},"message":{"title":"Number \#($0)","body":"of \#(sends)"}}"#
    }
    while true {
      do {
        let answer = try await api.request(
          "POST", "/api/sends/batch", user: "alice", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
        return answer.split(separator: UInt8(ascii: "\n")).count { $0.starts(with: Array(#"{"id""#.utf8)) }
      } catch let refusal as APIClient.Refusal where refusal.description.contains(": 503 ") {
        // The embedded cluster holds little: the front end says when it is full.
        try await Task.sleep(for: .milliseconds(100))
      }
    }
  }

  private func progress(_ report: StreamReport, since last: StreamReport) {
    let rate = Double(report.settled - last.settled) / max(report.seconds - last.seconds, 0.001)
    let line =
      "  \(Int(rate)) sends/s · settled \(report.settled) of \(sends) · delivered \(report.delivered) · failed \(report.failed) · "
      + "in flight \(max(0, report.accepted - report.settled))"
    if Console.isTerminal { Console.overwrite(line) } else { Console.print(line) }
  }
}
