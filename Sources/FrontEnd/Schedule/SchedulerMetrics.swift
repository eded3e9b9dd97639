import CoreMetrics
import FanfareCore
import Metrics
import Synchronization

/// What is counted of scheduled sends, per hub.
final class SchedulerMetrics: Sendable {
  private struct Hub {
    let accepted: Counter
    let lateness: Timer

    init(_ hub: HubName) {
      accepted = Counter(label: "fanfare_sends_accepted_total", dimensions: [("hub", hub.rawValue)])
      lateness = Timer(label: "fanfare_schedule_lateness_seconds", dimensions: [("hub", hub.rawValue)])
    }
  }

  private let hubs = Mutex<[HubName: Hub]>([:])

  /// A send is in the topic, so long after its time.
  func fired(_ hub: HubName, after lateness: Duration) {
    hubs.withLock { hubs in
      let entry = hubs[hub] ?? Hub(hub)
      hubs[hub] = entry
      entry.accepted.increment()
      entry.lateness.record(duration: max(.zero, lateness))
    }
  }
}
