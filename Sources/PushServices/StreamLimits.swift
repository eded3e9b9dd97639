/// The most connections of a sender to its push service, and the most pushes on each at a time.
package struct StreamLimits: Sendable {
  package let connections: Int
  package let streams: Int

  package static let apns = StreamLimits(connections: 4, streams: 1_000)
  /// FCM allows 100 streams on each connection.
  package static let fcm = StreamLimits(connections: 10, streams: 100)
  /// WNS speaks HTTP/1.1: each connection carries one request.
  package static let wns = StreamLimits(connections: 64, streams: 1)
}
