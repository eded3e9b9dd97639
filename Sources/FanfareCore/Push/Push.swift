/// Phantom type of a push's id.
package enum PushSubject {}

/// The id of one push of one send to one device. Derived, not drawn: a repeated push has the id of the first, so that
/// services and apps can recognise it.
package typealias PushID = Identifier<PushSubject>

extension Identifier where Subject == PushSubject {
  /// The id of the push of a send to a device: a UUID version 8 that mixes both ids with MurmurHash3's 64-bit
  /// finaliser.
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

/// One message to one device, ready to be handed to a push service.
package struct Push: Sendable {
  /// The worker's own number for it, given back with the outcome.
  package let ticket: UInt64
  /// Names it towards the push service and the device.
  package let id: PushID
  /// The device's address, in the platform's normal form.
  package let handle: String
  /// What to show; shared by all pushes of one send on one platform.
  package let rendering: RenderedPush
  /// From this moment on it must not be delivered.
  package let expiresAt: UnixTime
  /// Whether it is one of a broadcast's, which stand behind single ones where the service's connections have no room
  /// for all.
  package let isBulk: Bool

  package init(
    ticket: UInt64, id: PushID, handle: String, rendering: RenderedPush, expiresAt: UnixTime, isBulk: Bool = false
  ) {
    self.ticket = ticket
    self.id = id
    self.handle = handle
    self.rendering = rendering
    self.expiresAt = expiresAt
    self.isBulk = isBulk
  }
}
