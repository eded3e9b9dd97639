import FanfareCore
import FoundationEssentials
import Ledger
import PushSimulator
import Roles
import Synchronization

/// A stream of sends through the HTTP API's batch route, watched until all of them are settled.
struct Stream: Sendable {
  /// How long nothing may move before it is given up.
  private static let patience = Duration.seconds(60)

  let sends: Int
  let users: Int
  let api: APIClient
  let simulator: PushSimulator
  let ledger: any LedgerStorage

  /// How far the posting is.
  private final class Posting: Sendable {
    let state = Mutex((accepted: 0, isOver: false))
  }

  /// Runs it, with a progress line. Gives up when nothing has moved for a minute, and reports what there is by then.
  /// Throws `DemoError` when a send is refused for good.
  func run() async throws -> StreamReport {
    let before = try await ledger.totals(hub: .default)
    let arrivedBefore = simulator.store.counts()
    Console.print("Sending \(sends) times to \(users) users …")
    let start = ContinuousClock.now
    let posting = Posting()
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await post(posting) }
      defer {
        // Also the posting of what nobody waits for any more.
        group.cancelAll()
        // What is printed next is not to stand behind the progress.
        if Console.isTerminal { Console.print() }
      }
      var report = StreamReport()
      var lastChange = start
      while true {
        try await Task.sleep(for: .milliseconds(Console.isTerminal ? 200 : 1000))
        let posted = posting.state.withLock { $0 }
        // Over, or failed: then nothing more will come to be settled.
        if posted.isOver { try await group.waitForAll() }
        let totals = try await ledger.totals(hub: .default)
        let counts = simulator.store.counts()
        var next = StreamReport(from: before, to: totals)
        next.posted = posted.accepted
        next.arrived = counts.accepted - arrivedBefore.accepted
        next.duplicates = counts.duplicates - arrivedBefore.duplicates
        next.seconds = (ContinuousClock.now - start) / .seconds(1)
        if next.settled != report.settled || next.posted != report.posted { lastChange = .now }
        progress(next, since: report)
        report = next
        if (posted.isOver && report.settled >= sends) || ContinuousClock.now - lastChange > Self.patience { break }
      }
      return report
    }
  }

  /// Posts all sends in batches of newline-delimited JSON, a few at a time, and says how far it is.
  private func post(_ posting: Posting) async throws {
    defer { posting.state.withLock { $0.isOver = true } }
    let batchSize = 250
    try await withThrowingTaskGroup(of: Int.self) { group in
      for (index, first) in stride(from: 0, to: sends, by: batchSize).enumerated() {
        if index >= 4, let accepted = try await group.next() { posting.state.withLock { $0.accepted += accepted } }
        group.addTask { try await post(first..<min(first + batchSize, sends)) }
      }
      for try await accepted in group { posting.state.withLock { $0.accepted += accepted } }
    }
  }

  /// Posts those sends, again and again until all are accepted. Returns how many they are.
  private func post(_ numbers: Range<Int>) async throws -> Int {
    // Neighbouring sends go to different users, so that no user's order holds up the stream.
    var lines = numbers.map {
      #"{"to":{"user":"user-\#($0 % users)"},"message":{"title":"Number \#($0)","body":"of \#(sends)"}}"#
    }
    while true {
      do {
        let answer = try await api.request(
          "POST", "/api/sends/batch", user: "alice", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
        lines = try Self.refused(lines, by: answer)
        if lines.isEmpty { return numbers.count }
      } catch let refusal as APIClient.Refusal where refusal.status == 503 {
        // Below, as for a part of them.
      }
      // The embedded cluster holds little: the front end says when it is full.
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  /// The lines that may be posted again, by the batch's answer: one line for each, in their order.
  private static func refused(_ lines: [String], by answer: Data) throws -> [String] {
    struct Answer: Decodable {
      struct Problem: Decodable { let status: Int }
      let error: Problem
    }
    let answers = answer.split(separator: UInt8(ascii: "\n"))
    guard answers.count == lines.count else {
      throw DemoError("\(lines.count) sends were posted, \(answers.count) answered")
    }
    return try zip(lines, answers).compactMap { line, answer in
      if answer.starts(with: Array(#"{"id""#.utf8)) { return nil }
      guard try JSONDecoder().decode(Answer.self, from: answer).error.status == 503 else {
        throw DemoError("a send was refused: \(String(decoding: answer, as: UTF8.self))")
      }
      return line
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
