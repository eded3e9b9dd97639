package import FanfareCore

/// Where the simulator listens, whom it lets in, and how much it keeps.
package struct SimulatorConfiguration: Sendable {
  /// The address of all listeners, and what clients connect to: `127.0.0.1`, `::1` or `localhost`. The certificate is
  /// for these, and the admin routes ask nobody for a password.
  package var host = "127.0.0.1"
  /// The APNs port; with 0, here and below, the kernel chooses.
  package var apnsPort = 0
  /// The FCM port.
  package var fcmPort = 0
  /// The port of both vendors' token endpoints and of WNS.
  package var httpsPort = 0
  /// The port of the admin routes.
  package var adminPort = 0

  /// What callers must prove to have; nil makes a set of keys when the simulator is made.
  package var credentials: SimulatorCredentials?
  /// How long an access token of Google is good for.
  package var googleTokenLifetime: Duration = .seconds(3600)
  /// How long an access token of Microsoft is good for.
  package var microsoftTokenLifetime: Duration = .seconds(86_400)

  /// Streams that APNs allows on a connection before a push with a valid token has succeeded on it.
  package var apnsInitialStreams = 1
  /// Streams that APNs allows afterwards.
  package var apnsStreams = 1000
  /// Streams that FCM allows.
  package var fcmStreams = 100

  /// Whether what arrives is kept. Off, it is only counted, and duplicates are not seen.
  package var recordsPushes = true
  /// Whether handles that begin with certain letters get a fault; see `HandlePrefix`.
  package var honoursHandlePrefixes = true

  /// Notifications kept of each device: the newest.
  package var notificationsPerDevice = 50
  /// Devices kept, all platforms together; the device seen first goes first.
  package var maximumDevices = 100_000
  /// Pushes back to which a duplicate is recognised, all platforms together, while they are spread over many devices;
  /// of those to a single device, and in a store of 1,000 devices or more, a 64th of that, at least.
  package var duplicateWindow = 2_000_000
  /// Faults in force at a time, at most.
  package var maximumFaults = 1000

  /// How long token requests and WNS's may take after the simulator has been asked to stop. Connections of APNs and FCM
  /// are closed at once: what they have not answered by then a sender cannot know.
  package var shutdownTimeout: Duration = .seconds(5)
  /// What tells the ages of tokens and stamps what arrives.
  package var clock: any WallClock = SystemWallClock()

  package init() {}
}
