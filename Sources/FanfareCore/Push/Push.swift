/// Phantom type of a push's id.
package enum PushSubject {}

/// The id of the push of a send to a device.
/// Derived from both: a repeated push has the same id, so that services and apps can recognise it.
package typealias PushID = Identifier<PushSubject>

extension Identifier where Subject == PushSubject {
  /// The id of the push of a send to a device: a UUID version 8 that mixes both ids with
  /// MurmurHash3's 64-bit finaliser.
  package init(send: SendID, registration: RegistrationID) {
    func mixed(_ word: UInt64) -> UInt64 {
      var word = word
      word ^= word >> 33
      word &*= 0xFF51_AFD7_ED55_8CCD
      word ^= word >> 33
      word &*= 0xC4CE_B9FE_1A85_EC53
      word ^= word >> 33
      return word
    }
    let high = mixed(send.high ^ mixed(registration.high &+ 0x9E37_79B9_7F4A_7C15))
    let low = mixed(send.low ^ mixed(registration.low &+ high))
    self.init(
      high: (high & 0xFFFF_FFFF_FFFF_0FFF) | 0x8000,
      low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}

/// One message to one device, ready for its push service.
package struct Push: Sendable {
  /// The worker's number for the push, returned with the outcome.
  package let ticket: UInt64
  /// The id as the push service and the device see it.
  package let id: PushID
  /// The device's address, in the platform's normal form.
  package let handle: String
  /// The payload, shared by all pushes of one send on one platform.
  package let rendering: RenderedPush
  /// The moment from which it must not be delivered.
  package let expiresAt: UnixTime
  /// Whether it belongs to a broadcast.
  /// Single pushes have priority when the service's connections are full.
  package let isBroadcast: Bool

  package init(
    ticket: UInt64, id: PushID, handle: String, rendering: RenderedPush, expiresAt: UnixTime, isBroadcast: Bool = false
  ) {
    self.ticket = ticket
    self.id = id
    self.handle = handle
    self.rendering = rendering
    self.expiresAt = expiresAt
    self.isBroadcast = isBroadcast
  }
}

/// A send rendered for all devices of one platform.
/// Only that platform's sender creates and interprets it.
package struct RenderedPush: Sendable {
  /// The header fields that depend on the send, with names in lower case.
  package let headers: [Field]
  /// The payload. Some services need the handle inserted into it at `handleOffset`.
  package let body: [UInt8]
  /// The position in `body` for the handle; nil if the handle is sent outside the body.
  package let handleOffset: Int?
  /// Whether the payload is valid for all devices once the service has accepted it for one.
  /// False if part of it is for one kind of device only.
  package let isUniform: Bool
  /// The moment until which the service keeps the push for the device, unless the push expires before; nil: until it
  /// expires.
  package let keptUntil: UnixTime?
  /// Whether the service only checks the push and delivers nothing.
  package let isDryRun: Bool

  package init(
    headers: [Field], body: [UInt8], handleOffset: Int? = nil, isUniform: Bool = true, keptUntil: UnixTime? = nil,
    isDryRun: Bool = false
  ) {
    (self.keptUntil, self.isDryRun) = (keptUntil, isDryRun)
    self.headers = headers
    self.body = body
    self.handleOffset = handleOffset
    self.isUniform = isUniform
  }

  /// One header field.
  package struct Field: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }
}
