import Crypto

/// A digest of several pieces, each preceded by its length, so that no two lists of pieces run together.
struct Fingerprint {
  private var hash = SHA256()

  /// Begins with these pieces.
  init(_ pieces: String...) {
    for piece in pieces { add(piece.utf8) }
  }

  /// Of what was posted to a route.
  init(_ route: String, body: ArraySlice<UInt8>) {
    self.init(route)
    add(body)
  }

  /// Adds a piece.
  mutating func add(_ piece: some Collection<UInt8>) {
    hash.update(data: (0..<8).map { UInt8(truncatingIfNeeded: piece.count >> ($0 * 8)) })
    hash.update(data: Array(piece))
  }

  /// SHA-256 of what was added, 32 bytes.
  var digest: [UInt8] { Array(hash.finalize()) }
}
