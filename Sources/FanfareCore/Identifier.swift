/// A 128-bit identifier, written as a canonical lower-case UUID (RFC 9562).
///
/// Stored as two words, so that copying, comparing and hashing allocate nothing. The type parameter distinguishes the
/// ids of different kinds of objects.
package struct Identifier<Subject>: Hashable, Sendable {
  /// The first eight bytes, big-endian.
  package let high: UInt64
  /// The last eight bytes, big-endian.
  package let low: UInt64

  /// Creates an identifier of any UUID version from two big-endian words.
  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A random identifier (UUID version 4).
  /// Random identifiers are uniformly distributed over the id space.
  package static func random() -> Self {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// A random identifier (UUID version 4) from the generator.
  package static func random(using generator: inout some RandomNumberGenerator) -> Self {
    Self(
      high: (generator.next() & 0xFFFF_FFFF_FFFF_0FFF) | 0x4000,
      low: (generator.next() & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }

  /// An identifier that sorts by its time of creation (UUID version 7).
  package static func timeOrdered(at time: UnixTime) -> Self {
    var generator = SystemRandomNumberGenerator()
    return timeOrdered(at: time, using: &generator)
  }

  /// An identifier that sorts by its time of creation (UUID version 7), with random bits from the
  /// generator.
  package static func timeOrdered(at time: UnixTime, using generator: inout some RandomNumberGenerator) -> Self {
    let milliseconds = UInt64(clamping: time.milliseconds) & 0xFFFF_FFFF_FFFF
    return Self(
      high: milliseconds << 16 | 0x7000 | (generator.next() & 0x0FFF),
      low: (generator.next() & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }

  /// The 16 bytes in network order, as stored in databases.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16)
    for word in [high, low] {
      for shift in stride(from: 56, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
    return bytes
  }

  /// Creates an identifier from 16 bytes in network order; nil for any other number of bytes.
  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for (index, byte) in bytes.enumerated() {
      if index < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
    }
    self.init(high: high, low: low)
  }
}

extension Identifier: Comparable {
  /// Orders by bytes, like PostgreSQL's `uuid` and SQLite's blobs.
  package static func < (left: Self, right: Self) -> Bool {
    left.high == right.high ? left.low < right.low : left.high < right.high
  }
}

extension Identifier: LosslessStringConvertible {
  /// Parses the canonical form `8-4-4-4-12` in either letter case; nil for anything else.
  package init?(_ text: String) {
    self.init(utf8: text.utf8Span.span)
  }

  /// Parses the canonical form in UTF-8; nil for anything else.
  package init?(utf8 text: Span<UInt8>) {
    guard let (high, low) = text.uuid else { return nil }
    self.init(high: high, low: low)
  }

  /// The canonical lower-case form.
  package var description: String {
    var text: [UInt8] = []
    text.reserveCapacity(36)
    append(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the 36 characters of the canonical lower-case form.
  package func append(to output: inout [UInt8]) { output.appendUUID(high, low) }
}

extension [UInt8] {
  /// Appends a canonical lower-case UUID.
  ///
  /// Not generic over the subject: callers in other modules would run an unspecialized version, several times as slow.
  fileprivate mutating func appendUUID(_ high: UInt64, _ low: UInt64) {
    let dash = UInt8(ascii: "-")
    append(addingCapacity: 36) { text in
      text.append(bytesOf: Hexadecimal.digits(UInt32(truncatingIfNeeded: high >> 32)))
      func middle(_ digits: UInt64) {
        text.append(dash)
        text.append(bytesOf: UInt32(truncatingIfNeeded: digits >> 32))
        text.append(dash)
        text.append(bytesOf: UInt32(truncatingIfNeeded: digits))
      }
      middle(Hexadecimal.digits(UInt32(truncatingIfNeeded: high)))
      middle(Hexadecimal.digits(UInt32(truncatingIfNeeded: low >> 32)))
      text.append(bytesOf: Hexadecimal.digits(UInt32(truncatingIfNeeded: low)))
    }
  }
}

extension Span<UInt8> {
  /// The two words of a canonical UUID; nil for any other text. Not generic, for the same reason.
  fileprivate var uuid: (high: UInt64, low: UInt64)? {
    guard count == 36 else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for index in indices {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard self[index] == UInt8(ascii: "-") else { return nil }
      } else {
        guard let digit = Hexadecimal.value(of: self[index]) else { return nil }
        if index < 18 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
      }
    }
    return (high, low)
  }
}
