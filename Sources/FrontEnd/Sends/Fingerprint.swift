import Crypto
import FanfareCore

/// A SHA-256 digest of several pieces.
/// Each is preceded by its length, so that different lists have different digests.
struct Fingerprint {
  private var hash = SHA256()

  init(_ pieces: String...) {
    for piece in pieces { add(piece.utf8) }
  }

  /// Digests the body of a request to a route.
  init(_ route: String, body: ArraySlice<UInt8>) {
    self.init(route)
    add(body)
  }

  mutating func add(_ piece: some Collection<UInt8>) {
    hash.update(data: (0..<8).map { UInt8(truncatingIfNeeded: piece.count >> ($0 * 8)) })
    hash.update(data: Array(piece))
  }

  /// 32 bytes.
  var digest: [UInt8] { Array(hash.finalize()) }

  /// The first sixteen bytes of the digest as big-endian words.
  fileprivate var words: (high: UInt64, low: UInt64) {
    digest.prefix(16).enumerated().reduce(into: (0, 0)) { words, byte in
      if byte.offset < 8 {
        words.high = words.high << 8 | UInt64(byte.element)
      } else {
        words.low = words.low << 8 | UInt64(byte.element)
      }
    }
  }
}

extension SendClaim {
  /// Returns the id of the send in a line of the claimed request.
  /// It is the same on every call and every front end.
  ///
  /// A UUID of version 8 that begins with the time of the claim, so that it sorts like the ids of other sends.
  func sendID(line: Int = 0) -> SendID {
    var fingerprint = Fingerprint("\(at.milliseconds)", "\(line)")
    fingerprint.add(key)
    let (high, low) = fingerprint.words
    let milliseconds = UInt64(clamping: at.milliseconds) & 0xFFFF_FFFF_FFFF
    return SendID(
      high: milliseconds << 16 | 0x8000 | (high & 0x0FFF), low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}

extension SecurePayloadID {
  /// Derives the id of the payload that a send announces (UUID version 8).
  /// A repeated send announces the same id.
  init(announcedBy send: SendID) {
    let (high, low) = Fingerprint("secure payload", "\(send)").words
    self.init(high: (high & 0xFFFF_FFFF_FFFF_0FFF) | 0x8000, low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}
