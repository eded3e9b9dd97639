import FanfareCore
import FoundationEssentials
import Ledger
import PushSimulator
import Roles
import Synchronization

/// Posts a stream of sends through the batch route and waits until all are settled.
struct Stream: Sendable {
  /// The longest time without progress.
  private static let patience = Duration.seconds(60)

  let sends: Int
  let users: Int
  let api: APIClient
  let simulator: PushSimulator
  let ledger: any LedgerStore

  /// The progress of posting.
  private final class Posting: Sendable {
    let state = Mutex((accepted: 0, isOver: false))
  }

  /// Runs the stream and shows progress. After a minute without progress it returns the report so far.
  ///
  /// Throws `DemoError` when a send is refused permanently.
  func run() async throws -> StreamReport {
    let before = try await ledger.totals(hub: .default)
    let arrivedBefore = simulator.store.counts()
    Console.print("Sending \(sends) times to \(users) users …")
    let start = ContinuousClock.now
    let posting = Posting()
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await post(posting) }
      defer {
        // The cancellation also ends the posting.
        group.cancelAll()
        // The next output must begin on a new line.
        if Console.isTerminal { Console.print() }
      }
      var report = StreamReport()
      var lastChange = start
      while true {
        try await Task.sleep(for: .milliseconds(Console.isTerminal ? 200 : 1000))
        let posted = posting.state.withLock { $0 }
        // Posting has ended or failed: nothing more will settle.
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

  /// Posts all sends in batches of newline-delimited JSON, a few at a time, and shows progress.
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

  /// Posts the sends, repeatedly until all are accepted. Returns their number.
  private func post(_ numbers: Range<Int>) async throws -> Int {
    // Consecutive sends go to different users, because each user's sends are ordered.
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
        // Retried below, like refused lines.
      }
      // The front end answers 503 when the embedded cluster is full.
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  /// The lines to post again, according to the batch's answer, which has one line for each in order.
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

/// The result of a stream of sends: the ledger's account, and the notifications on the devices.
struct StreamReport: Sendable {
  /// Sends accepted by the HTTP API.
  var posted = 0
  /// Sends on the sends topic.
  var accepted = 0
  /// Settled sends.
  var settled = 0
  /// Sends without a device.
  var noTarget = 0
  /// Devices whose push was accepted.
  var delivered = 0
  /// Devices whose push was rejected, including dead devices.
  var rejected = 0
  /// Devices with another outcome: expired, failed, unconfirmed.
  var failed = 0
  /// Notifications that arrived on devices.
  var arrived = 0
  /// Notifications that arrived on their device a second time.
  var duplicates = 0
  var seconds = 0.0

  init() {}

  /// The difference between two totals.
  init(from before: LedgerTotals, to after: LedgerTotals) {
    func devices(_ outcomes: DeviceResult.Outcome...) -> Int {
      func count(_ totals: LedgerTotals) -> Int {
        var count = 0
        for ends in totals.devices.values { for outcome in outcomes { count += ends[outcome] ?? 0 } }
        return count
      }
      return count(after) - count(before)
    }
    accepted = after.accepted - before.accepted
    settled = after.settled - before.settled
    noTarget = after.noTarget - before.noTarget
    delivered = devices(.delivered)
    rejected = devices(.rejected, .deviceGone)
    failed = devices(.expired, .failed, .unconfirmed)
  }

  /// The number of losses.
  ///
  /// It counts accepted sends that are not on the topic, sends that did not settle, and recorded deliveries that
  /// reached no device.
  var lost: Int { max(0, posted - accepted) + max(0, accepted - settled) + max(0, delivered - (arrived - duplicates)) }

  /// Whether all sends were posted and settled, and nothing was lost.
  func isComplete(of sends: Int) -> Bool { posted == sends && accepted == settled && lost == 0 }

  /// The report as one line of JSON.
  var json: String {
    """
    {"accepted":\(accepted),"settled":\(settled),"delivered":\(delivered),"rejected":\(rejected),"noTarget":\(noTarget),\
    "failed":\(failed),"duplicates":\(duplicates),"lost":\(lost),"seconds":\((seconds * 100).rounded() / 100)}
    """
  }
}
