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
