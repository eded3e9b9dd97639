import FanfareCore
import RDKafka
import Testing

@testable import Simulation

/// A check that finds nothing must be one that can find something.
struct CountingTests {
  private let world = World(seed: 1, trace: Trace())
  private let topics = Topics(prefix: "t")
  private let accounts: Accounts
  private let counting: Counting
  private let send: SendRequest

  init() {
    accounts = Accounts(in: world, topics: topics, keepsOrder: true)
    counting = Counting(topics, hubs: [.default], accounts)
    send = SendRequest(
      id: SendID(high: 1, low: 1), acceptedAt: world.wall, audience: .user("bob"),
      content: Content(message: Message(body: "hello")))
    accounts.post(send)
    append(send.encoded(), to: topics.sends)
  }

  /// Appends a record; the accounts may miss it.
  private func append(_ value: [UInt8], to topic: String, isMissed: Bool = false) {
    let partition = TopicPartition(topic: topic, partition: 0)
    let record = SimulatedCluster.Stored(key: nil, value: value, timestamp: 0)
    if !isMissed { accounts.appended(partition, 0, record) }
    counting.appended(partition, 0, record)
  }

  private func status(of send: SendRequest, delivered: Int = 0, settledAfter: Duration = .zero) -> [UInt8] {
    StatusRecord(
      send: send.id, hub: send.hub, state: .settled, sender: nil, audience: send.audience,
      acceptedAt: send.acceptedAt, settledAt: world.wall + settledAfter,
      devices: (0..<delivered).map { number in
        DeviceResult(
          registration: RegistrationID(high: 1, low: UInt64(number)), platform: .fcm, outcome: .delivered, reason: "",
          status: 200, attempts: 1)
      }
    ).encoded()
  }

  private var found: [String] { accounts.violations.map(\.text) }

  @Test func secondStatusIsNotCounted() {
    append(status(of: send), to: topics.status)
    append(status(of: send, settledAfter: .seconds(1)), to: topics.status)
    counting.finish(mayDiffer: false)
    #expect(found.isEmpty)
  }

  @Test func settledSendThatIsCountedWronglyIsFound() {
    append(status(of: send), to: topics.status, isMissed: true)
    #expect(found == ["the ledger counts 1 settled sends of 0"])
  }

  /// A push service accepts it and drops it.
  @Test func pushThatExpiresOnItsWayIsDelivered() {
    accounts.lapsed(
      Push(
        ticket: 1, id: PushID(send: send.id, registration: RegistrationID(high: 1, low: 0)), handle: "h",
        rendering: RenderedPush(headers: [], body: []), expiresAt: world.wall))
    append(status(of: send, delivered: 1), to: topics.status)
    counting.finish(mayDiffer: false)
    #expect(found.isEmpty)
  }

  @Test func openSendIsNoViolation() {
    counting.finish(mayDiffer: false)
    #expect(found.isEmpty)
  }

  @Test func deliveryThatDidNotArriveIsFound() {
    append(status(of: send, delivered: 1), to: topics.status)
    counting.finish(mayDiffer: true)
    #expect(found == ["the ledger counts 1 pushes as delivered, and 0 have arrived"])
  }
}
