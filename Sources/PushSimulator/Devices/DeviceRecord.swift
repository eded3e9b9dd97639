/// What the store keeps of one device.
struct DeviceRecord {
  /// How many notifications it has received, the forgotten ones too.
  private(set) var received = 0
  /// The newest ones; a ring once it is full.
  private var ring: [ReceivedNotification] = []
  private var oldest = 0

  /// Adds a notification, and lets the oldest go when there are `limit` already.
  mutating func append(_ notification: ReceivedNotification, limit: Int) {
    received += 1
    guard limit > 0 else { return }
    if ring.count < limit {
      ring.append(notification)
    } else {
      ring[oldest] = notification
      oldest = (oldest + 1) % limit
    }
  }

  /// The kept notifications, oldest first.
  var notifications: [ReceivedNotification] { Array(ring[oldest...] + ring[..<oldest]) }
}
