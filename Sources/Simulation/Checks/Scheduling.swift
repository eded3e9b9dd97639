import FanfareCore
import RDKafka

/// Checks how schedulers share the scheduled sends: each is produced once, by the process that has the lease on it, and
/// not before its time.
///
/// `@unchecked Sendable`: see `World`.
final class Scheduling: @unchecked Sendable {
  private struct Held {
    let due: UnixTime
    let hub: HubName
    /// Who has produced it last, and when.
    var production: (process: String, at: World.Time)?
    /// Whether Kafka has not acknowledged a production of it, so that it may or may not be in the log.
    var isInDoubt = false
  }

  /// For so long its scheduler may be away without another one producing it again: a lease, and a pause between two
  /// questions.
  private static let lease: World.Time = .seconds(31)

  private let world: World
  private let registry: SimulatedRegistry
  private let accounts: Accounts
  private var sends: [SendID: Held] = [:]
  /// The processes that have asked for leases.
  var leases: [LeaseID: String] = [:]
  private(set) var checks = 0

  init(in world: World, _ registry: SimulatedRegistry, _ accounts: Accounts) {
    (self.world, self.registry, self.accounts) = (world, registry, accounts)
  }

  func violate(_ text: String) { accounts.violate(text) }

  /// A caller schedules the send.
  func hold(_ send: SendRequest) { sends[send.id] = Held(due: send.acceptedAt, hub: send.hub) }

  /// A scheduler begins to produce a send. Returns its id.
  func submitted(_ record: ProducerRecord, by process: SimulatedProcess) -> SendID? {
    checks += 1
    guard let id = try? SendRequest.decode(record.value[...], recordTime: world.wall).id, let held = sends[id] else {
      violate("\(process.name) produces a send that is not scheduled")
      return nil
    }
    world.trace.note(world.now, "\(process.name) produces \(id)")
    let isTroubled = accounts.isTroubled(process.name, between: world.now - Self.lease, and: world.now)
    if process.now() < held.due, !isTroubled { violate("\(id) is produced by \(process.name) before its time") }
    let holder = registry.state.schedule.lease(of: id, hub: held.hub).flatMap { leases[$0] }
    if holder != process.name, !isTroubled {
      violate("\(id) is produced by \(process.name), and leased by \(holder ?? "no process")")
    }
    if let former = held.production {
      accounts.repeated(id)
      let mayRepeat = [former.process, "registry"].contains {
        accounts.isTroubled($0, between: former.at, and: former.at + Self.lease)
      }
      if !held.isInDoubt, !mayRepeat {
        violate("\(id) is produced by \(process.name), and was produced by \(former.process)")
      }
    }
    sends[id]?.production = (process.name, world.now)
    return id
  }

  /// Kafka has refused a send, or not answered.
  func failed(_ send: SendID?) { if let send { sends[send]?.isInDoubt = true } }
}
