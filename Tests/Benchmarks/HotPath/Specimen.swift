import Crypto
import FanfareCore
import HTTP2
import PushServices
import RDKafka

/// What the benchmarks work on: a send to one user with one device, as it is in most cases.
enum Specimen {
  static let now = UnixTime(milliseconds: 1_795_248_000_000)
  static let token = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"
  static let partition = TopicPartition(topic: "fanfare.sends", partition: 0)

  /// A send to a user, with an id of its own.
  static func send(to user: String = "alice@example.com") -> SendRequest {
    SendRequest(
      id: .random(), sender: "backend", acceptedAt: now, audience: .user(user),
      content: Content(
        message: Message(
          title: "Your order is on its way", body: "It will be with you by 4 pm.", data: ["order": "48213"])),
      timeToLive: 3600)
  }

  /// What became of a send to one device.
  static func status() -> StatusRecord {
    let send = send()
    let result = DeviceResult(
      registration: .random(), platform: .apns, outcome: .delivered, reason: "", status: 200, attempts: 1)
    return StatusRecord(
      send: send.id, hub: send.hub, state: .settled, sender: send.sender, audience: send.audience,
      acceptedAt: send.acceptedAt,
      settledAt: now + .milliseconds(42), devices: [result])
  }

  /// A push to a device.
  static func push(_ rendering: RenderedPush, to handle: String) -> Push {
    Push(ticket: 1, id: PushID(high: 1, low: 2), handle: handle, rendering: rendering, expiresAt: now + .seconds(3600))
  }

  /// A record of the partition.
  static func record(at offset: Int64, value: [UInt8], key: [UInt8]? = nil) -> ConsumedRecord {
    ConsumedRecord(
      topic: partition.topic, partition: partition.partition, offset: offset, timestamp: now.milliseconds,
      key: key.map { $0[...] }, value: value[...])
  }

  /// The fields of pushes to Apple under a token of a key that is good nowhere.
  static func apnsFields() throws -> APNsCredential.Fields {
    let key = P256.Signing.PrivateKey().pemRepresentation
    let configuration = APNsConfiguration(
      keyID: "ABC123DEFG", teamID: "TEAM123456", privateKey: key, topic: "com.example.app")
    return try APNsCredential(configuration).fields(now: now)
  }

  /// Fields as many requests share them.
  static let sharedFields: HTTP2Headers = [
    ":method": "POST", ":scheme": "https", ":authority": "push.example.com",
    "authorization": "bearer \(token)\(token)\(token)",
    "content-type": "application/json", "apns-topic": "com.example.app", "apns-push-type": "alert",
    "apns-priority": "10",
  ]
}
