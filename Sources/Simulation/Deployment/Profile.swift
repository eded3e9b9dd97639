/// The size of a deployment, and the faults that it has to bear.
package struct Profile: Sendable {
  package var name: String
  package var workers = 3
  package var partitions = 8
  package var users = 40
  package var devicesPerUser: ClosedRange<Int64> = 0...3
  /// The devices with the tag that broadcasts go to.
  package var tagged = 0
  /// Sends in a second of virtual time.
  package var rate = 20.0
  /// The share of sends that go to the tag.
  package var broadcastShare = 0.0
  /// The times to live of sends, in seconds.
  package var timesToLive: ClosedRange<Int64> = 30...300
  /// How long sends are posted and faults happen.
  package var duration: Duration = .seconds(60)
  /// The faults that happen, and how often.
  package var faults: Set<Fault> = []
  package var meanTimeBetweenFaults: Duration = .seconds(8)
  /// The share of Kafka's answers and push services' answers that are lost, of requests to the registry that fail, of
  /// pushes that fail for a moment, and of devices that are gone.
  package var doubt = 0.0
  package var registryFailures = 0.0
  package var glitches = 0.0
  package var dead = 0.0

  /// A kind of fault.
  package enum Fault: String, CaseIterable, Sendable {
    case crash, freeze, restart, addWorker, cut, clockStep, leaderLoss, registryOutage
    case serviceOutage, serviceSilence, credentialRefusal, throttling
  }

  /// Whether the push services are in trouble in a run of this profile, so that first attempts wait.
  var disturbsServices: Bool {
    !faults.isDisjoint(with: [.serviceOutage, .serviceSilence, .credentialRefusal, .throttling, .cut]) || doubt > 0
      || glitches > 0
  }

  /// Within which time each send comes to its end; nil: within its life.
  var longest: Duration? { mayRepeat ? nil : .seconds(5) }

  /// Whether a push can be repeated in a run of this profile.
  package var mayRepeat: Bool { !faults.isEmpty || doubt > 0 }

  /// All profiles, by name.
  package static let all: [Profile] = [
    Profile(name: "calm"),
    Profile(name: "deaths", faults: [.crash, .freeze, .restart, .addWorker, .cut]),
    Profile(name: "kafka", faults: [.leaderLoss, .crash], doubt: 0.02),
    Profile(
      name: "services", faults: [.serviceOutage, .serviceSilence, .credentialRefusal, .throttling], doubt: 0.01,
      glitches: 0.05, dead: 0.05),
    Profile(name: "registry", faults: [.registryOutage, .crash], registryFailures: 0.1),
    Profile(name: "broadcasts", tagged: 6_000, rate: 5, broadcastShare: 0.05, faults: [.crash, .freeze, .restart]),
    Profile(
      name: "everything", tagged: 3_000, broadcastShare: 0.01, faults: Set(Fault.allCases), doubt: 0.01,
      registryFailures: 0.02, glitches: 0.02, dead: 0.02),
  ]

  package init(
    name: String, tagged: Int = 0, rate: Double = 20, broadcastShare: Double = 0, faults: Set<Fault> = [],
    doubt: Double = 0, registryFailures: Double = 0, glitches: Double = 0, dead: Double = 0
  ) {
    (self.name, self.tagged, self.rate, self.broadcastShare) = (name, tagged, rate, broadcastShare)
    (self.faults, self.doubt, self.registryFailures) = (faults, doubt, registryFailures)
    (self.glitches, self.dead) = (glitches, dead)
  }
}
