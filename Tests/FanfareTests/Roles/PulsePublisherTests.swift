import FanfareCore
import Operations
import RDKafka
import ServiceLifecycle
import Support
import Testing

@testable import Roles

@Suite(.timeLimit(.minutes(1))) struct PulsePublisherTests {
  /// Like all records, those of the pulse topic are CloudEvents and say so.
  @Test func processReportsItselfUntilItsLastWord() async throws {
    let kafka = try TestKafka.shared()
    let topic = try await kafka.topic(partitions: 1)
    let publisher = try PulsePublisher(
      role: "worker", topic: topic, client: kafka.client("pulse"), health: HealthRegistry(readiness: []),
      metrics: PrometheusMetrics(), segments: nil, clock: ManualClock(), logger: TestKafka.quietLogger)
    let services = ServiceGroup(services: [publisher], logger: TestKafka.quietLogger)
    let reader = try LogReader(client: kafka.client(), logger: TestKafka.quietLogger)
    try await withThrowingTaskGroup { tasks in
      tasks.addTask { try await services.run() }
      while try await reader.spans(of: [topic]).allSatisfy({ $0.count == 0 }) {}
      await services.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
    var pulses: [Pulse] = []
    let spans = try await reader.spans(of: [topic])
    try await TopicScan(.reports(command: "test"), reader: reader).read(spans) { records in
      for record in records {
        let pulse = try #require(Pulse(record: record.value))
        #expect(record.key.map { String(decoding: $0, as: UTF8.self) } == pulse.process.id)
        #expect(record.headers == [RecordHeader(name: "content-type", text: "application/cloudevents+json")])
        pulses.append(pulse)
      }
      return true
    }
    #expect(pulses.count >= 2)
    #expect(pulses.dropLast().allSatisfy { !$0.isLast } && pulses.last?.isLast == true)
    #expect(Set(pulses.map(\.process)).count == 1)
  }
}
