import EmbeddedKafka
import FanfareCore
import RDKafka
import Registry
import Support
import Testing

@testable import Worker

/// The worker on the real protocol: a cluster, a registry file, and scripted push services.
@Suite(.timeLimit(.minutes(5))) struct WorkerTests {
  @Test func everySendSettlesOncePoisonIsDeadLetteredAndDrainCommitsAll()
    async throws
  {
    let rig = try await Rig()
    for user in 0..<20 { try await rig.register("user\(user)", user % 2 == 0 ? .apns : .fcm, "aa\(10 + user)") }
    try await rig.kafka.withProducer { producer in
      let users = (0..<1_000).map { "user\($0 % 25)" }
      let sends = try await rig.post(to: users, through: producer)
      try await rig.post([ProducerRecord(topic: rig.topics.sends, key: nil, value: Array("{".utf8))], through: producer)
      let (worker, _) = try rig.worker(sink: producer)
      let run = Task { try await worker.run() }
      let statuses = try await rig.statuses(1_000)
      let letters = try await rig.read(1, from: rig.topics.deadLetter) { try DeadLetter.decode($0) }
      #expect(worker.readinessProblems.isEmpty)
      worker.shutDown()
      try await within(.seconds(30)) { try await run.value }

      #expect(statuses.count == 1_000)
      #expect(Set(statuses.map(\.send)) == Set(sends.map(\.id)))
      #expect(statuses.filter { $0.state == .noTarget }.count == 200)
      #expect(statuses.flatMap(\.devices).filter { $0.outcome == .delivered }.count == 800)
      #expect(letters.map(\.reason) == [.undecodable])
      // At the device, one user's sends are in the order in which they were posted.
      var order: [String: [SendID]] = [:]
      for push in rig.apns.pushes + rig.fcm.pushes {
        order[push.handle, default: []].append(
          try #require(SendID(String(decoding: push.rendering.body, as: UTF8.self))))
      }
      for user in 0..<20 {
        #expect(order["aa\(10 + user)"] == sends.enumerated().filter { $0.offset % 25 == user }.map(\.element.id))
      }
    }
    #expect(try await rig.committed() == 1_001)
  }

  @Test func nothingIsCommittedBeforeStatusIsAcknowledged() async throws {
    let rig = try await Rig()
    try await rig.register("bob", .fcm, "token")
    try await rig.kafka.withProducer { producer in
      try await rig.post(to: [String](repeating: "bob", count: 10), through: producer)
      let sink = HeldSink(producer)
      let (worker, consumer) = try rig.worker(sink: sink) { $0.times.drainDeadline = .milliseconds(200) }
      let run = Task { try await worker.run() }
      await sink.waitForAcknowledgements(10)
      // All is pushed and written; only the acknowledgements are missing. The worker leaves in good order, and has
      // nothing to commit.
      worker.shutDown()
      try await within(.seconds(30)) { try await run.value }
      _ = consumer
    }
    #expect(try await rig.committed() == 0)
    #expect(rig.fcm.pushes.count == 10)
  }

  @Test func crashRepeatsOnlyUnsettledSends() async throws {
    let rig = try await Rig()
    for user in 0..<10 { try await rig.register("user\(user)", .fcm, "token\(user)") }
    // Two users' pushes are never answered in the first life.
    rig.fcm.setScript { push, _ in
      ["token3", "token7"].contains(push.handle) ? nil : PushOutcome(.accepted, status: 200)
    }
    try await rig.kafka.withProducer { producer in
      let sends = try await rig.post(to: (0..<100).map { "user\($0 % 10)" }, through: producer)
      let (first, consumer) = try rig.worker(sink: producer)
      let life = Task { try await first.run() }
      _ = try await rig.statuses(80)
      while try await rig.settled(consumer) < 80 {}
      life.cancel()
      _ = try? await life.value  // It was cancelled; how it ends does not matter.
      #expect(rig.fcm.pushes.count == 82)
      rig.fcm.setScript { _, _ in PushOutcome(.accepted, status: 200) }

      let second = try rig.worker(sink: producer).worker
      let run = Task { try await second.run() }
      let statuses = try await rig.statuses(100)
      second.shutDown()
      try await within(.seconds(30)) { try await run.value }
      // Lost: nothing. Repeated: only the two pushes that had no answer, whatever settled above them in their
      // partitions.
      #expect(statuses.map(\.send).sorted { "\($0)" < "\($1)" } == sends.map(\.id).sorted { "\($0)" < "\($1)" })
      let attempts = Dictionary(grouping: rig.fcm.pushes, by: \.id).mapValues(\.count)
      #expect(attempts.count == 100)
      #expect(rig.fcm.pushes.count == 102)
    }
    #expect(try await rig.committed() == 100)
  }

  @Test func secondWorkerTakesItsShareWithoutLossOrRepetition() async throws {
    let rig = try await Rig()
    for user in 0..<50 { try await rig.register("user\(user)", .fcm, "token\(user)") }
    try await rig.kafka.withProducer { producer in
      let first = try rig.worker(sink: producer).worker
      let runFirst = Task { try await first.run() }
      var sends = try await rig.post(to: (0..<500).map { "user\($0 % 50)" }, through: producer)
      try await rig.fcm.waitForPushes(500)
      // The newcomer's assignment is awaited while sends go on coming.
      let second = try rig.worker(sink: producer).worker
      let runSecond = Task { try await second.run() }
      var rounds = 0
      while !second.readinessProblems.isEmpty, rounds < 500 {
        rounds += 1
        sends += try await rig.post(to: (0..<20).map { "user\($0)" }, through: producer)
        try await rig.fcm.waitForPushes(sends.count)
      }
      while !second.readinessProblems.isEmpty { await Task.yield() }
      sends += try await rig.post(to: (0..<500).map { "user\($0 % 50)" }, through: producer)
      let statuses = try await rig.statuses(sends.count)
      first.shutDown()
      second.shutDown()
      try await within(.seconds(60)) {
        try await runFirst.value
        try await runSecond.value
      }
      #expect(statuses.count == sends.count)
      #expect(Set(statuses.map(\.send)) == Set(sends.map(\.id)))
      #expect(rig.fcm.pushes.count == sends.count)
      #expect(Set(rig.fcm.pushes.map(\.id)).count == sends.count)
    }
  }

  @Test func refusedProduceRequestsDelayStatusesAndLoseNone() async throws {
    let kafka = try TestKafka.embedded()
    let rig = try await Rig(kafka: kafka)
    try await rig.register("bob", .fcm, "token")
    rig.fcm.setScript { _, _ in nil }
    try await kafka.withProducer { producer in
      let sends = try await rig.post(to: ["bob", "bob", "bob"], through: producer)
      let (worker, _) = try rig.worker(sink: producer)
      let run = Task { try await worker.run() }
      try await rig.fcm.waitForPushes(1)
      try #require(kafka.cluster).inject([.notEnoughReplicas, .requestTimedOut, .notEnoughReplicas], into: .produce)
      rig.fcm.setScript { _, _ in PushOutcome(.accepted, status: 200) }
      rig.fcm.answer(PushOutcome(.accepted, status: 200))
      // One of which Kafka had not confirmed that it is there may have come twice.
      var statuses = try await rig.statuses(3)
      while Set(statuses.map(\.send)).count < 3 { statuses = try await rig.statuses(statuses.count + 1) }
      worker.shutDown()
      try await within(.seconds(30)) { try await run.value }
      #expect(Set(statuses.map(\.send)) == Set(sends.map(\.id)))
    }
    #expect(try await rig.committed() == 3)
  }

  @Test func deadDeviceIsUnregisteredOnlyIfRegisteredBeforeVerdict() async throws {
    let rig = try await Rig()
    let verdict = SystemWallClock().now() + .seconds(-60)
    let stale = try await rig.register("old", .apns, "aa01", at: verdict + .seconds(-60))
    let fresh = try await rig.register("new", .apns, "aa02", at: verdict + .seconds(30))
    rig.apns.setScript { _, _ in PushOutcome(.deviceGone, reason: "Unregistered", status: 410, since: verdict) }
    try await rig.kafka.withProducer { producer in
      try await rig.post(to: ["old", "new"], through: producer)
      let (worker, _) = try rig.worker(sink: producer)
      let run = Task { try await worker.run() }
      let statuses = try await rig.statuses(2)
      #expect(statuses.flatMap(\.devices).map(\.outcome) == [.deviceGone, .deviceGone])
      // Dead devices are unregistered before the worker ends.
      worker.shutDown()
      try await within(.seconds(30)) { try await run.value }
    }
    #expect(try await rig.registry.registry.registration(stale, hub: .default) == nil)
    #expect(try await rig.registry.registry.registration(fresh, hub: .default) != nil)
  }
}
