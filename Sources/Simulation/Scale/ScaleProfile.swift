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
    ScaleProfile("million-per-second", "a million single sends a second")
  ]

  package init(_ name: String, _ about: String) { (self.name, self.about) = (name, about) }

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
      /// The registry's databases answer nothing for so long.
      case registryFailure(Duration)
    }

    package init(after: Duration, _ kind: Kind) { (self.after, self.kind) = (after, kind) }
  }

  /// A push service: its share of the pushes, and its times of answers in milliseconds, which are assumed.
  package struct Service: Sendable {
    package var platform: Platform
    package var share: Double
    package var median: Double
    package var p99: Double
    package var limits: StreamLimits

    package static let all: [Service] = [
      Service(.apns, share: 0.5, median: 40, p99: 200, .apns), Service(.fcm, share: 0.45, median: 60, p99: 300, .fcm),
      Service(.wns, share: 0.05, median: 80, p99: 400, .wns),
    ]

    package init(_ platform: Platform, share: Double, median: Double, p99: Double, _ limits: StreamLimits) {
      (self.platform, self.share, self.median, self.p99, self.limits) = (platform, share, median, p99, limits)
    }
  }
}
