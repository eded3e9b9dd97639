/// Remembers digests for a while, in bounded memory and constant time.
///
/// A digest is remembered for at least `lifetime` after its last insertion and at most twice as long, or shorter if
/// more than `capacity` are inserted meanwhile. Two generations: the older one is dropped when the younger one is full
/// or old enough.
struct RecentSet {
  private let capacity: Int
  private let lifetime: Duration
  private var young: Set<Int> = []
  private var old: Set<Int> = []
  private var turnedAt: ContinuousClock.Instant

  init(capacity: Int, lifetime: Duration, now: ContinuousClock.Instant) {
    self.capacity = max(2, capacity)
    self.lifetime = lifetime
    turnedAt = now
  }

  mutating func insert(_ digest: Int, at now: ContinuousClock.Instant) {
    turn(at: now)
    if young.count >= capacity / 2, !young.contains(digest) { advance(at: now) }
    young.insert(digest)
  }

  mutating func remove(_ digest: Int) {
    young.remove(digest)
    old.remove(digest)
  }

  mutating func contains(_ digest: Int, at now: ContinuousClock.Instant) -> Bool {
    turn(at: now)
    return young.contains(digest) || old.contains(digest)
  }

  private mutating func turn(at now: ContinuousClock.Instant) {
    guard now - turnedAt >= lifetime else { return }
    if now - turnedAt >= lifetime * 2 { young = [] }
    advance(at: now)
  }

  private mutating func advance(at now: ContinuousClock.Instant) {
    old = young
    young = []
    turnedAt = now
  }
}

/// Digests that cannot be computed outside the process: Swift's hash function (SipHash-1-3) has a random key in each
/// process.
enum KeyedDigest {
  static func make(_ feed: (inout Hasher) -> Void) -> Int {
    var hasher = Hasher()
    feed(&hasher)
    return hasher.finalize()
  }
}

extension Hasher {
  /// Adds a name by its bytes: Unicode-equivalent names are different users.
  mutating func combine(exactly name: String) {
    combine(name.utf8.count)
    for byte in name.utf8 { combine(byte) }
  }
}
