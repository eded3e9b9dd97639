package import FanfareCore
package import PushServices
package import RDKafka
package import Worker

/// A deployment of any size, and what happens to it.
package struct ScaleProfile: Sendable {
  package var name: String
  package var about: String
  package var workers = 1_000
  package var partitions = 4_096
  package var frontEnds = 24
  /// Single sends in a second, each to a user with one device.
  package var sendsPerSecond = 1_000_000.0
  package var duration: Duration = .seconds(60)
  /// The length of a step.
  package var step: Duration = .milliseconds(20)
  /// Processors of each worker.
  package var cores = 2
  package var brokers = 24
  package var brokerCores = 16
  /// The databases that share the registrations, and the processors of each.
  package var registries = 4
  package var databaseCores = 16
  package var ledgers = 12
  package var ledgerDatabases = 3
  package var costs = Costs()
  package var services = Service.all
  /// Without load: an answer of Kafka to a producer, the delivery of a record to a consumer, an answer of the registry.
  package var acknowledgement: Duration = .milliseconds(4)
  package var delivery: Duration = .milliseconds(3)
  package var lookUp: Duration = .milliseconds(2)
  /// The product's own values.
  package var worker = WorkerConfiguration()
  package var kafka = ClusterProfile()
  package var frontEndLinger = ProducerConfiguration.standardLinger
  /// The faults, and when they begin.
  package var events: [Event] = []
  /// Whether workers have names that survive a restart (`worker.instance`).
  package var isStatic = false
  /// From the end of a worker's process until its successor asks for partitions.
  package var restart: Duration = .seconds(5)

  /// All profiles, by name.
  package static let all: [ScaleProfile] = [
    ScaleProfile("million-per-second", "a million single sends a second"),
    ScaleProfile("stadium", "a broadcast to 100 million devices beside 100,000 single sends a second") {
      $0.sendsPerSecond = 100_000
      $0.duration = .seconds(360)
      $0.events = [Event(after: .seconds(10), .broadcast(devices: 100_000_000))]
    },
    ScaleProfile("region-loss", "one of three regions is lost: workers, brokers, and the registry's primary") {
      $0.duration = .seconds(180)
      $0.step = .milliseconds(50)
      $0.events = [
        Event(after: .seconds(10), .regionLoss(share: 1.0 / 3, leaders: .seconds(10), registry: .seconds(30)))
      ]
    },
    ScaleProfile("rolling-deploy", "all workers are restarted, 50 at a time") {
      $0.duration = .seconds(600)
      $0.step = .milliseconds(50)
      $0.events = [Event(after: .seconds(10), .deploy(atOnce: 50))]
    },
    ScaleProfile("apns-outage-1h", "APNs answers 503 for an hour") {
      $0.duration = .seconds(4_500)
      $0.step = .milliseconds(200)
      $0.events = [Event(after: .seconds(10), .outage(.apns, .seconds(3_600)))]
    },
    ScaleProfile("quota", "a million single sends a second, with a quota at FCM that they use to 90 %") {
      $0.services[1].perMinute = 30_000_000
    },
    ScaleProfile("calibration", "the size and the times of a run of the worker's code") { calibrate(&$0) },
    ScaleProfile("calibration-deaths", "the same, and ten of the workers die") {
      calibrate(&$0)
      $0.events = [Event(after: .seconds(20), .deaths(share: 0.2))]
    },
  ]

  /// The sizes that the worker's code is run with for comparison, and the times of the models around it.
  private static func calibrate(_ profile: inout ScaleProfile) {
    (profile.workers, profile.partitions, profile.frontEnds, profile.sendsPerSecond) = (50, 512, 1, 2_000)
    (profile.step, profile.duration) = (.milliseconds(5), .seconds(200))
    profile.acknowledgement = .milliseconds(3)
    (profile.delivery, profile.lookUp) = (.milliseconds(6), .milliseconds(4.5))
    profile.services = [Platform.apns, .fcm].map {
      Service($0, share: 0.5, times: .uniform(from: 5, to: 60), .apns)
    }
    (profile.frontEndLinger, profile.worker.times.statusLinger) = (.zero, .zero)
    profile.kafka.heartbeatInterval = .seconds(1)
  }

  package init(_ name: String, _ about: String, _ change: (inout ScaleProfile) -> Void = { _ in }) {
    (self.name, self.about) = (name, about)
    change(&self)
  }

  package struct Event: Sendable {
    package var after: Duration
    package var kind: Kind

    package enum Kind: Sendable {
      /// A send to a tag with so many devices.
      case broadcast(devices: Int)
      /// A push service answers 503 for so long.
      case outage(Platform, Duration)
      /// A share of the workers dies.
      case deaths(share: Double)
      /// All workers are restarted, so many at a time.
      case deploy(atOnce: Int)
      /// A share of the workers and of the brokers is lost. A partition has a new leader after a while, and so has the
      /// registry's database.
      case regionLoss(share: Double, leaders: Duration, registry: Duration)
    }

    package init(after: Duration, _ kind: Kind) { (self.after, self.kind) = (after, kind) }

    /// The same with other sizes: the workers that a deployment restarts at a time, the devices of a broadcast.
    package func resized(atOnce: Int?, devices: Int?) -> Event {
      switch kind {
      case .deploy(let usual): Event(after: after, .deploy(atOnce: atOnce ?? usual))
      case .broadcast(let usual): Event(after: after, .broadcast(devices: devices ?? usual))
      default: self
      }
    }
  }

  /// A push service: its share of the pushes, and its times of answers in milliseconds, which are assumed.
  package struct Service: Sendable {
    package var platform: Platform
    package var share: Double
    package var times: Times
    package var limits: StreamLimits
    /// The quota of pushes in a minute; nil: none.
    package var perMinute: Int?

    package enum Times: Sendable {
      case logNormal(median: Double, p99: Double)
      case uniform(from: Double, to: Double)
    }

    package static let all: [Service] = [
      Service(.apns, share: 0.5, times: .logNormal(median: 40, p99: 200), .apns),
      Service(.fcm, share: 0.45, times: .logNormal(median: 60, p99: 300), .fcm),
      Service(.wns, share: 0.05, times: .logNormal(median: 80, p99: 400), .wns),
    ]

    package init(_ platform: Platform, share: Double, times: Times, _ limits: StreamLimits) {
      (self.platform, self.share, self.times, self.limits) = (platform, share, times, limits)
    }
  }
}
