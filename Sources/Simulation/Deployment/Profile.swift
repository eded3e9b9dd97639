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
  /// The share of devices whose service has another answer than to take a push, each device its own.
  package var refusing = 0.0
  /// How many devices must be refused in a row before the credential is, as far as workers know.
  package var mostRefused = 200
  /// The changes of devices in a second: another user logs in, a new handle, or removal.
  package var moves = 0.0
  package var hubs = 1
  /// How many of the hubs have devices, but no senders in the workers.
  package var unservedHubs = 0
  /// How far the registry's standby is behind, which answers a share of the look-ups, and takes over after a fault.
  package var registryLag: Duration = .zero
  package var staleLookUps = 0.0
  /// The share of requests to the registry, and of pushes, that take up to two seconds.
  package var slowRequests = 0.0
  package var slowPushes = 0.0
  /// The quota of the second platform of each hub; nil: none.
  package var pushesPerMinute: Int?
  /// How many devices a page of a broadcast has, and how many segments there are.
  package var pageDevices = 200
  package var segments = 3
  /// The rate of each broadcast; nil: none.
  package var maximumPerSecond: Int?

  /// Whether workers have names that survive restarts: static members of their group.
  package var isStatic = false
  /// The share of appended batches behind which offsets are missing.
  package var gaps = 0.0

  /// The front ends that produce scheduled sends, and the share of sends that are scheduled.
  var schedulers = 0
  var scheduledShare = 0.0

  /// A fault that counts as a broken promise, for tests.
  var planted: Fault?
  /// The share of sends that their caller posts twice.
  package var duplicates = 0.0

  /// A kind of fault.
  package enum Fault: String, CaseIterable, Sendable {
    case crash, freeze, stall, restart, addWorker, cut, clockStep, leaderLoss, registryOutage
    case serviceOutage, serviceSilence, credentialRefusal, throttling
    case goAway, credentialExpiry, registryFailOver, pause, cancellation
    /// Two workers die within one session time; a second process gets a worker's name.
    case twoDeaths, twin
    case brokerDeath, coordinatorLoss, packetLoss, clockDrift
    /// A log loses its end, or its oldest records, and with them sends.
    case uncleanElection, retention
    /// A scheduler dies, freezes, is cut off, or its clock steps.
    case schedulerTrouble

    static let losses: Set<Fault> = [.uncleanElection, .retention]

    /// Whether it concerns one worker at random, not all of them.
    var concernsOneWorker: Bool {
      switch self {
      case .crash, .freeze, .stall, .restart, .cut, .clockStep, .clockDrift, .packetLoss, .twin: true
      case .addWorker, .leaderLoss, .registryOutage, .registryFailOver, .serviceOutage, .serviceSilence,
        .credentialRefusal, .throttling, .goAway, .credentialExpiry, .pause, .cancellation, .twoDeaths, .brokerDeath,
        .coordinatorLoss, .uncleanElection, .retention, .schedulerTrouble:
        false
      }
    }
  }

  /// Whether logs lose records.
  var losesRecords: Bool { !faults.isDisjoint(with: Fault.losses) }

  private static let serviceFaults: Set<Fault> = [
    .serviceOutage, .serviceSilence, .credentialRefusal, .throttling, .goAway, .credentialExpiry,
  ]

  /// Whether the push services are in trouble in a run of this profile, so that first attempts wait.
  var disturbsServices: Bool {
    !faults.isDisjoint(with: Self.serviceFaults.union([.cut])) || doubt > 0 || glitches > 0 || refusing > 0
  }

  /// Whether quotas are kept: clocks that step and lost reservations shift them.
  var keepsQuotas: Bool { faults.isDisjoint(with: [.clockStep, .clockDrift, .registryFailOver]) }

  /// Whether a device that is called dead is unregistered soon.
  var unregistersDead: Bool {
    moves == 0 && registryFailures == 0 && faults.isSubset(of: Self.serviceFaults)
  }

  /// Whether first attempts to a device are in the order of its sends.
  var keepsOrder: Bool { !disturbsServices && !faults.contains(.uncleanElection) }

  /// Whether all workers learn of a broadcast's control in time.
  var keepsControls: Bool {
    faults.isSubset(of: [.pause, .cancellation, .crash, .restart, .addWorker]) && registryFailures == 0
  }

  /// Within which time each send comes to its end; nil: within its life.
  var longest: Duration? {
    guard faults.isEmpty, doubt == 0, glitches == 0, refusing == 0 else { return nil }
    // Three seconds of it are the time in which the group forms.
    return .seconds(broadcastShare > 0 ? 8 : 5)
  }

  /// Whether a push can be repeated in a run of this profile.
  package var mayRepeat: Bool { !faults.isSubset(of: [.restart, .addWorker]) || doubt > 0 }

  /// The profiles that run unless others are asked for.
  package static let all: [Profile] = [
    Profile("calm") { $0.duplicates = 0.05 },
    Profile(name: "calm-broadcasts", tagged: 600, broadcastShare: 0.01),
    Profile("restarts", faults: [.restart, .addWorker]) { profile in
      (profile.tagged, profile.broadcastShare, profile.glitches) = (400, 0.005, 0.05)
      (profile.meanTimeBetweenFaults, profile.slowPushes) = (.seconds(3), 0.05)
    },
    Profile(name: "deaths", faults: [.crash, .freeze, .restart, .addWorker, .cut]),
    Profile(name: "kafka", faults: [.leaderLoss, .crash, .twoDeaths], doubt: 0.02),
    Profile(name: "services", faults: serviceFaults, doubt: 0.01, glitches: 0.05, dead: 0.05),
    Profile(
      name: "elections", faults: [.brokerDeath, .coordinatorLoss, .uncleanElection, .retention, .crash], doubt: 0.01,
      gaps: 0.05),
    Profile(
      name: "static-members", faults: [.crash, .freeze, .stall, .restart, .twoDeaths, .twin, .addWorker],
      isStatic: true),
    Profile(
      name: "networks", faults: [.cut, .packetLoss, .brokerDeath, .coordinatorLoss, .clockDrift, .clockStep],
      doubt: 0.01),
    Profile(name: "registry", faults: [.registryOutage, .crash], registryFailures: 0.1),
    Profile(name: "broadcasts", tagged: 1_200, rate: 5, broadcastShare: 0.05, faults: [.crash, .freeze, .restart]),
    Profile("moving-devices", faults: [.crash, .serviceSilence, .credentialRefusal, .throttling]) { profile in
      (profile.moves, profile.hubs, profile.devicesPerUser) = (10, 2, 0...6)
      (profile.meanTimeBetweenFaults, profile.dead) = (.seconds(4), 0.2)
      (profile.slowRequests, profile.slowPushes) = (0.05, 0.02)
    },
    Profile("stale-replica", faults: [.crash, .freeze]) { profile in
      (profile.moves, profile.registryLag, profile.staleLookUps) = (10, .seconds(1), 0.5)
    },
    Profile("registry-failover", faults: [.registryFailOver, .crash]) { profile in
      (profile.tagged, profile.rate, profile.broadcastShare) = (800, 10, 0.02)
      (profile.moves, profile.registryLag) = (5, .seconds(1))
    },
    Profile("quotas", faults: [.crash, .freeze, .restart]) { profile in
      (profile.tagged, profile.rate, profile.broadcastShare) = (300, 10, 0.01)
      (profile.pushesPerMinute, profile.maximumPerSecond) = (1_500, 60)
    },
    Profile("scheduled-sends", faults: [.schedulerTrouble, .registryOutage, .leaderLoss, .brokerDeath]) { profile in
      (profile.schedulers, profile.scheduledShare) = (3, 0.7)
      (profile.doubt, profile.registryFailures) = (0.01, 0.05)
    },
    Profile("paused-broadcasts", faults: [.pause, .cancellation, .crash]) { profile in
      (profile.tagged, profile.rate, profile.broadcastShare) = (800, 10, 0.02)
      (profile.maximumPerSecond, profile.slowPushes) = (20, 0.02)
    },
    Profile("readmissions", faults: [.serviceOutage, .throttling, .leaderLoss, .brokerDeath, .crash]) { profile in
      (profile.meanTimeBetweenFaults, profile.doubt) = (.seconds(4), 0.05)
    },
    Profile("silences", faults: [.serviceSilence, .freeze, .restart, .addWorker, .cut]) { profile in
      (profile.meanTimeBetweenFaults, profile.slowPushes) = (.seconds(3), 0.1)
    },
    Profile("stalls", faults: [.stall, .restart, .addWorker]) { profile in
      (profile.meanTimeBetweenFaults, profile.slowPushes) = (.seconds(2), 0.1)
    },
    // A registry that fails over loses scheduled sends, too.
    Profile("everything", faults: Set(Fault.allCases).subtracting(Fault.losses.union([.schedulerTrouble]))) { profile in
      (profile.tagged, profile.broadcastShare, profile.hubs, profile.moves) = (600, 0.01, 2, 2)
      (profile.doubt, profile.glitches, profile.dead) = (0.01, 0.02, 0.02)
      (profile.registryFailures, profile.registryLag, profile.staleLookUps) = (0.02, .milliseconds(500), 0.1)
      (profile.slowRequests, profile.slowPushes, profile.duplicates) = (0.01, 0.01, 0.02)
    },
  ]

  /// Profiles that reach what the others do not: more trouble than a deployment ever has.
  package static let rough: [Profile] = [
    Profile("refusing-devices", faults: [.credentialExpiry, .goAway, .restart]) { profile in
      (profile.refusing, profile.mostRefused, profile.doubt) = (0.4, 2, 0.02)
      (profile.hubs, profile.unservedHubs, profile.timesToLive) = (3, 1, 10...3_000)
      (profile.duration, profile.rate, profile.meanTimeBetweenFaults) = (.seconds(1_500), 2, .seconds(60))
    },
    Profile("hasty-operators", faults: [.pause, .cancellation]) { profile in
      (profile.tagged, profile.rate, profile.broadcastShare) = (2_000, 5, 0.1)
      (profile.pushesPerMinute, profile.slowRequests) = (1_200, 0.3)
      profile.meanTimeBetweenFaults = .milliseconds(500)
    },
    Profile("storm", faults: Set(Fault.allCases).subtracting(Fault.losses), storm),
    Profile("static-storm", faults: Set(Fault.allCases)) { profile in
      storm(&profile)
      profile.isStatic = true
    },
    Profile("tiny-pages", faults: Set(Fault.allCases)) { profile in
      (profile.tagged, profile.rate, profile.broadcastShare) = (10_000, 5, 0.1)
      (profile.pageDevices, profile.segments, profile.timesToLive) = (10, 1, 3...15)
      (profile.meanTimeBetweenFaults, profile.slowRequests) = (.seconds(1), 0.5)
    },
  ]

  package static let known = all + rough

  /// As many faults and as much trouble as a deployment can bear.
  private static func storm(_ profile: inout Profile) {
    profile.meanTimeBetweenFaults = .seconds(2)
    (profile.tagged, profile.broadcastShare, profile.hubs, profile.moves) = (3_000, 0.02, 2, 2)
    (profile.doubt, profile.glitches, profile.dead, profile.refusing) = (0.01, 0.05, 0.02, 0.1)
    (profile.registryFailures, profile.slowRequests, profile.slowPushes) = (0.02, 0.1, 0.05)
    (profile.maximumPerSecond, profile.pushesPerMinute, profile.timesToLive) = (300, 6_000, 5...200)
  }

  /// A profile without faults but these, with some changes.
  init(_ name: String, faults: Set<Fault> = [], _ change: (inout Profile) -> Void) {
    self.name = name
    self.faults = faults
    change(&self)
  }

  package init(
    name: String, tagged: Int = 0, rate: Double = 20, broadcastShare: Double = 0, faults: Set<Fault> = [],
    doubt: Double = 0, registryFailures: Double = 0, glitches: Double = 0, dead: Double = 0, gaps: Double = 0,
    isStatic: Bool = false
  ) {
    (self.name, self.tagged, self.rate, self.broadcastShare) = (name, tagged, rate, broadcastShare)
    (self.faults, self.doubt, self.registryFailures) = (faults, doubt, registryFailures)
    (self.glitches, self.dead) = (glitches, dead)
    (self.gaps, self.isStatic) = (gaps, isStatic)
  }
}
