import FanfareCore
import Operations
import Support
import Testing

@testable import Console

/// The aggregation of what processes report.
@Suite struct PulseBoardTests {
  private let clock = ManualClock()

  private func pulse(
    _ id: String = "w1", role: String = "worker", counters: [String: Double] = [:], hub: String = "default",
    labels: [String: String] = [:], gauges: [String: Double] = [:]
  ) -> Pulse {
    var pulse = Pulse(
      process: Pulse.Process(id: id, role: role, version: "1", host: "h", pid: 7, startedAt: 0), time: clock.now())
    let labels = labels.merging(["hub": hub]) { $1 }
    pulse.report(
      counters.map { MetricSample($0.key, .counter, labels: labels, value: $0.value) }
        + gauges.map { MetricSample($0.key, .gauge, labels: labels, value: $0.value) })
    return pulse
  }

  /// Records of `processes` processes, as they come from the topic, with the same series of 2^53 in each.
  private func greatest(_ processes: Int, _ samples: [MetricSample]) throws -> PulseBoard {
    var board = PulseBoard()
    for value in [1, 0x1p53] {
      for number in 0..<processes {
        var greatest = pulse("p\(number)")
        greatest.report(samples.map { MetricSample($0.name, $0.kind, labels: $0.labels, value: $0.value * value) })
        board.receive(try #require(Pulse(record: try greatest.record())), at: clock.now())
      }
      clock.advance(by: .seconds(1))
    }
    board.tick(at: clock.now())
    return board
  }

  private func snapshot(_ board: PulseBoard, hub: String = "default", isWhole: Bool = false) -> PulseSnapshot {
    PulseSnapshot(of: board, hub: hub, isWhole: isWhole, at: clock.now())
  }

  /// Whoever may write to the topic must not be able to end the front ends.
  @Test func absurdFiguresOfARecordAreLeftOut() throws {
    var reported = pulse(gauges: ["fanfare_consumer_partitions": 3])
    reported.report(
      reported.samples + [MetricSample("fanfare_consumer_lag_seconds", .gauge, labels: ["topic": "t"], value: 1e30)])
    let read = try #require(Pulse(record: try reported.record()))
    #expect(read.samples.map(\.value) == [3])
  }

  @Test func sumsBeyondAnIntegerAreShownAsItsGreatest() throws {
    var samples: [MetricSample] = [
      MetricSample("fanfare_circuit_state", .gauge, labels: ["hub": "default", "platform": "apns"], value: 1),
      MetricSample("fanfare_tls_certificate_expiry_timestamp_seconds", .gauge, value: 1),
      MetricSample("fanfare_consumer_lag_seconds", .gauge, labels: ["topic": "t"], value: 1),
    ]
    for number in 0..<600 {
      let labels = ["hub": "default", "topic": "t", "reason": "\(number)"]
      for (name, kind) in [
        ("fanfare_consumer_lag_records", .gauge), ("fanfare_consumer_partitions", .gauge),
        ("fanfare_dead_letters_total", MetricSample.Kind.counter),
      ] { samples.append(MetricSample(name, kind, labels: labels, value: 1)) }
    }
    let snapshot = snapshot(try greatest(4, samples), isWhole: true)
    let partitions = 600 * (1 << 53)
    #expect(snapshot.processes.allSatisfy { $0.partitions == ["t": partitions] })
    let findings = snapshot.findings.map(\.text)
    #expect(findings.contains { $0.contains("with \(Int.max) records behind it") })
    #expect(findings.contains { $0.hasPrefix("\(Int.max) records became dead letters") })
    #expect(snapshot.circuits.map(\.state) == [1 << 53])
    #expect(try snapshot.json.isEmpty == false)
  }

  /// A record that anybody may have written.
  @Test func recordIsReadUpToItsBounds() throws {
    var large = pulse()
    large.problems = (0..<1000).map { Pulse.Problem(check: "c\($0)", problem: String(repeating: "x", count: 600)) }
    large.segments = (0..<100).map { _ in
      Pulse.Segments(hub: "default", send: SendID.random().description, segments: .max, pagesAhead: .min)
    }
    large.segments[0] = Pulse.Segments(hub: "No Hub", send: "x", segments: 1, pagesAhead: 1)
    large.report([
      MetricSample("twice", .gauge, value: 1), MetricSample("twice", .gauge, value: 2),
      MetricSample("twice", .counter, value: 3),
      MetricSample("long", .gauge, labels: ["a": String(repeating: "x", count: 510)], value: 1),
    ])
    let read = try #require(Pulse(record: try large.record()))
    #expect(read.samples.map(\.value) == [1, 3])
    #expect(read.problems.count == Pulse.maximumProblems && read.segments.count == Pulse.maximumSegments)
    #expect(read.problems.allSatisfy { $0.problem.utf8.count <= Pulse.maximumTextSize + 3 })
    #expect(read.segments.allSatisfy { $0.hub == "default" })

    // The process's own report obeys the limit; this record does not.
    let series = (0..<3000).map { #"{"name":"m\#($0)","kind":"gauge","labels":{},"value":1}"# }
    let text = String(decoding: try pulse().record(), as: UTF8.self)
      .replacing(#""samples":[]"#, with: #""samples":[\#(series.joined(separator: ","))]"#)
    #expect(try #require(Pulse(record: text.utf8)).samples.count == Pulse.maximumSamples)
    #expect(Pulse(record: try pulse(String(repeating: "p", count: 600)).record()) == nil)
  }

  /// 300 processes with many problems, and enough series to fill the table, all different.
  @Test func documentIsBoundedWhateverIsReported() throws {
    var board = PulseBoard()
    for process in 0..<PulseBoard.maximumProcesses {
      var crowd = pulse("p\(process)")
      crowd.problems = (0..<100).map { Pulse.Problem(check: "c\($0)", problem: String(repeating: "x", count: 600)) }
      crowd.report(
        (0..<(process < 12 ? Pulse.maximumSamples : 5)).map { number in
          let names = ["fanfare_consumer_lag_records", "fanfare_consumer_partitions", "fanfare_circuit_state", "other"]
          let place = "\(process)-\(number)"
          return MetricSample(names[number % 4], .gauge, labels: ["topic": place, "platform": place], value: 1)
        })
      board.receive(try #require(Pulse(record: try crowd.record())), at: clock.now())
    }
    board.tick(at: clock.now())
    #expect(board.series.entries.count <= SeriesTable.maximumSeries)
    let snapshot = snapshot(board, isWhole: true)
    #expect(snapshot.processes.count == PulseBoard.maximumProcesses)
    #expect(snapshot.metrics?.count == PulseSnapshot.maximumMetrics)
    #expect(try snapshot.json.count < 8_000_000)
  }

  /// Processes and reasons come and go for months: the table must not fill with those that are gone.
  @Test func seriesOfEndedProcessesMakeRoomForOthers() throws {
    var board = PulseBoard()
    for generation in 0..<15 {
      clock.advance(by: PulseBoard.memory + .seconds(1))
      board.tick(at: clock.now())
      var crowd = pulse("p\(generation)")
      crowd.report(
        (0..<2000).map { number in
          let labels = ["hub": "default", "number": "\(generation)-\(number)"]
          return MetricSample("fanfare_pushes_in_flight", .gauge, labels: labels, value: 1)
        })
      board.receive(crowd, at: clock.now())
      board.tick(at: clock.now())
      #expect(snapshot(board).figures.inFlight == 2000)
    }
  }

  @Test func operatorOfOneHubReadsNothingOfAnother() throws {
    let scope = PulseScope(
      hooks: ["crm": ["shop"], "both": ["shop", "news"]].mapValues { Set($0.compactMap(HubName.init)) })
    var board = PulseBoard(scope: scope)
    let (shop, news) = try (#require(HubName("shop")), #require(HubName("news")))
    for count in [1.0, 5] {
      var sick = pulse("w1", counters: ["fanfare_push_outcomes_total": count], hub: "shop")
      sick.report(
        sick.samples + [
          MetricSample("fanfare_consumer_lag_seconds", .gauge, labels: ["topic": "fanfare.sends.shop"], value: 700),
          MetricSample("fanfare_consumer_lag_records", .gauge, labels: ["topic": "fanfare.sends.shop"], value: 7),
          MetricSample("fanfare_consumer_partitions", .gauge, labels: ["topic": "fanfare.sends.shop"], value: 7),
          MetricSample("fanfare_consumer_partitions", .gauge, labels: ["topic": "fanfare.sends"], value: 3),
          MetricSample("fanfare_hook_state", .gauge, labels: ["hook": "crm"], value: 1),
          MetricSample("fanfare_hook_state", .gauge, labels: ["hook": "unknown"], value: 1),
          MetricSample("fanfare_kafka_client_connected_brokers", .gauge, labels: ["client": "hook-crm"], value: 1),
          MetricSample("fanfare_hook_state", .gauge, labels: ["hook": "both"], value: 1),
          MetricSample("fanfare_ready", .gauge, labels: ["check": "token keys of shop"], value: 0),
        ])
      sick.problems = [
        Pulse.Problem(check: "worker", problem: "shop/apns: Apple refuses the key; ask shop's owner", hubs: [shop]),
        Pulse.Problem(check: "hook both", problem: "answers 500", hubs: [shop, news]),
        Pulse.Problem(check: "kafka", problem: "no broker"),
      ]
      sick.segments = [Pulse.Segments(hub: "shop", send: SendID.random().description, segments: 1, pagesAhead: 1)]
      board.receive(try #require(Pulse(record: try sick.record())), at: clock.now())
      clock.advance(by: .seconds(1))
      board.tick(at: clock.now())
    }
    let foreign = String(decoding: try snapshot(board, hub: "news", isWhole: true).json, as: UTF8.self)
    #expect(!foreign.contains("shop") && !foreign.contains("crm") && !foreign.contains("unknown"))
    #expect(foreign.contains("answers 500") && foreign.contains("no broker") && foreign.contains(#""fanfare.sends":3"#))
    #expect(snapshot(board, hub: "news").figures.oldest == 0)
    let own = String(decoding: try snapshot(board, hub: "shop", isWhole: true).json, as: UTF8.self)
    #expect(own.contains("Apple refuses the key; ask shop's owner") && own.contains("crm"))
    #expect(own.contains(#""fanfare.sends.shop":7"#))
    #expect(snapshot(board, hub: "shop").figures.oldest == 700)
    #expect(!own.contains("fanfare_ready"))
  }

  @Test func ratesComeFromTheGrowthOfCountersAndSurviveTheirReset() {
    var board = PulseBoard()
    for value in [100.0, 150, 10] {
      board.receive(pulse(counters: ["fanfare_sends_accepted_total": value]), at: clock.now())
      board.tick(at: clock.now())
      clock.advance(by: .seconds(1))
    }
    let past = snapshot(board, isWhole: true).history
    // The first pulse tells no rate; after the reset the counter has grown by what it shows.
    #expect(past?.accepted == [0, 50, 10])
  }

  @Test func ratesOfProcessesAreAddedAndThoseOfOtherHubsAreNotShown() {
    var board = PulseBoard()
    for value in [0.0, 10] {
      for id in ["w1", "w2"] {
        board.receive(
          pulse(
            id, counters: ["fanfare_push_outcomes_total": value],
            labels: ["platform": "apns", "outcome": "delivered", "reason": ""]), at: clock.now())
      }
      board.receive(
        pulse(
          "w3", counters: ["fanfare_push_outcomes_total": value * 100], hub: "other",
          labels: ["platform": "apns", "outcome": "rejected", "reason": "BadDeviceToken"]), at: clock.now())
      board.tick(at: clock.now())
      clock.advance(by: .seconds(1))
    }
    #expect(snapshot(board).figures.delivered == 20)
    #expect(snapshot(board).figures.failed == 0)
    #expect(snapshot(board).outcomes.map(\.reason) == [""])
    #expect(snapshot(board, hub: "other").figures.failed == 1000)
    #expect(snapshot(board).processes.count == 3)
  }

  @Test func aProcessVanishesAtItsLastWordAndIsListedAsSilentWithoutOne() {
    var board = PulseBoard()
    board.receive(pulse("w1"), at: clock.now())
    board.receive(pulse("w2"), at: clock.now())
    var last = pulse("w1")
    last.isLast = true
    board.receive(last, at: clock.now())
    #expect(snapshot(board).processes.map(\.id) == ["w2"])
    clock.advance(by: PulseBoard.patience + .seconds(1))
    board.tick(at: clock.now())
    #expect(snapshot(board).processes.map(\.isSilent) == [true])
    #expect(snapshot(board).findings.contains { $0.text.contains("fallen silent") })
    clock.advance(by: PulseBoard.memory)
    board.tick(at: clock.now())
    #expect(snapshot(board).processes.isEmpty)
  }

  @Test func theHistoryKeepsFifteenMinutes() {
    var history = History()
    for second in 0..<1000 { history.append(History.Point(accepted: Double(second))) }
    #expect(history.points.map(\.accepted) == (100..<1000).map(Double.init))
    #expect(history.last?.accepted == 999)
    var tally = QuarterHour()
    for minute: Int64 in 100..<120 { tally.add(1, at: minute) }
    #expect(tally.total == 15)
    tally.advance(to: 133)
    #expect(tally.total == 1)
    tally.advance(to: 500)
    #expect(tally.total == 0)
  }

  @Test func memoryIsBoundedWhateverIsReported() {
    var board = PulseBoard()
    for number in 0..<1000 {
      for value in [1.0, 2] {
        board.receive(
          pulse(
            "p\(number % 290)", counters: ["fanfare_push_outcomes_total": value + Double(number)], hub: "h\(number)",
            labels: ["reason": "r\(number)"]), at: clock.now())
        clock.advance(by: .milliseconds(1))
      }
    }
    for number in 0..<1000 { board.receive(pulse("q\(number)"), at: clock.now()) }
    board.tick(at: clock.now())
    #expect(board.members.count == PulseBoard.maximumProcesses)
    #expect(board.histories.count <= PulseBoard.maximumHubs)
    #expect(board.tallies.count <= PulseBoard.maximumTallies)
  }

  /// A process of 200 hubs. `busy` has accepted the most sends.
  private func crowded(busy: String, accepted: Double) -> Pulse {
    var samples = [MetricSample("process_resident_memory_bytes", .gauge, value: 1)]
    for number in 0..<200 {
      let hub = "hub-\(number)"
      let count = hub == busy ? accepted : number == 0 ? 2 : 1
      samples.append(MetricSample("fanfare_sends_accepted_total", .counter, labels: ["hub": hub], value: count))
      samples.append(MetricSample("aaa_of_no_page", .gauge, labels: ["hub": hub], value: 1))
      for platform in 0..<14 {
        let labels = ["hub": hub, "platform": "\(platform)"]
        samples.append(MetricSample("fanfare_circuit_state", .gauge, labels: labels, value: 0))
      }
    }
    var crowded = pulse()
    crowded.report(samples)
    return crowded
  }

  @Test func recordOfManyHubsHasTheBusiestOnes() throws {
    let sent = crowded(busy: "hub-99", accepted: 1000)
    #expect(sent.samples.count <= Pulse.maximumSamples)
    let hubs = try #require(sent.hubs)
    #expect(hubs.contains("hub-99") && hubs.contains("hub-0") && hubs.count == 133)
    #expect(sent.samples.contains { $0.name == "process_resident_memory_bytes" })
    #expect(!sent.samples.contains { $0.name == "aaa_of_no_page" && $0.labels["hub"] == "hub-100" })
    for hub in hubs { #expect(sent.samples.count { $0.labels["hub"] == hub } >= 15) }
    #expect(try #require(Pulse(record: try sent.record())) == sent)
  }

  /// What a hub has counted before is no growth of the second in which its process reports it.
  @Test func hubThatIsReportedAgainShowsNoFalseRate() {
    var board = PulseBoard()
    for (busy, accepted) in [("hub-0", 5.0), ("hub-99", 1000), ("hub-99", 1010)] {
      board.receive(crowded(busy: busy, accepted: accepted), at: clock.now())
      board.tick(at: clock.now())
      clock.advance(by: .seconds(1))
    }
    #expect(snapshot(board, hub: "hub-99", isWhole: true).history?.accepted.suffix(2) == [0, 10])
    #expect(!snapshot(board, hub: "hub-99").findings.contains { $0.text.contains("busiest") })
    #expect(snapshot(board, hub: "hub-98").findings.contains { $0.text.contains("busiest") })
  }

  @Test func findingsSayWhatIsWrongTheWorstFirst() {
    var board = PulseBoard()
    var sick = pulse(
      "w1", labels: ["platform": "apns", "topic": "fanfare.sends"],
      gauges: ["fanfare_circuit_state": 2, "fanfare_consumer_lag_seconds": 90, "fanfare_sends_in_flight": 0])
    sick.problems = [Pulse.Problem(check: "registry", problem: "is away")]
    board.receive(sick, at: clock.now())
    board.receive(pulse("l1", role: "ledger"), at: clock.now())
    let findings = snapshot(board).findings
    #expect(findings.map(\.level) == [.critical, .critical, .warning])
    #expect(findings[0].text.contains("circuit of apns is open at 1 of 1 workers"))
    #expect(findings[1].text.contains("registry: is away"))
    #expect(findings[2].text.contains("fanfare.sends has waited for 90 s"))
    #expect(snapshot(PulseBoard()).findings.map(\.level) == [.critical, .warning])
  }

  /// Three entries for one outage at two workers would hide what else is wrong.
  @Test func openCircuitIsOneFindingWithItsCause() {
    var board = PulseBoard()
    for id in ["w1", "w2"] {
      var sick = pulse(id, labels: ["platform": "apns"], gauges: ["fanfare_circuit_state": id == "w1" ? 1 : 2])
      sick.problems = [
        "default/apns: the push service is unavailable: Silence", "default/fcm: x", "default/apns: no route",
      ].map { Pulse.Problem(check: "worker", problem: $0, hubs: [.default]) }
      board.receive(sick, at: clock.now())
    }
    board.receive(pulse("l1", role: "ledger"), at: clock.now())
    let findings = snapshot(board).findings.map(\.text)
    #expect(findings.count == 3)
    #expect(
      findings[0] == "The circuit of apns is open at 2 of 2 workers, its sends are deferred: the push service is "
        + "unavailable: Silence; no route.")
    #expect(findings[1...].allSatisfy { $0.hasSuffix("worker: default/fcm: x") })
  }

  @Test func recordsSurviveTheTopicAndOthersAreSkipped() throws {
    var sent = pulse(counters: ["fanfare_sends_accepted_total": 3], gauges: ["g": 1.5])
    sent.problems = [Pulse.Problem(check: "kafka", problem: "no \"broker\"")]
    let record = try sent.record()
    #expect(Pulse(record: record) == sent)
    #expect(Pulse(record: Array(record.dropLast())) == nil)
    #expect(Pulse(record: Array(#"{"type":"fanfare.send.v1"}"#.utf8)) == nil)
  }
}
