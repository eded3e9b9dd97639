/// How urgently a device is to be woken for a send.
package enum Priority: String, CaseIterable, Sendable {
  /// At once, whatever it costs the battery.
  case high
  /// When it suits the device.
  case normal
}
