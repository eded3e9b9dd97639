import FanfareCore
import Worker

/// The pages of broadcasts that a worker pushes: one whole, and a head start of the next, which is of another segment.
struct PageWalk {
  private struct Page {
    let partition: Int
    let segment: Int
    /// The devices on each platform that no push was handed over for.
    var rest: [Int]
    var handed = 0
    /// The step in which its devices are known, and that of its last answer.
    let ready: Int
    var answered = 0
    /// The step in which the registry has noted that it is finished.
    var finished: Int?

    var isExhausted: Bool { rest.allSatisfy { $0 == 0 } }
  }

  private let configuration: WorkerConfiguration.Broadcasts
  private var open: [Page] = []

  init(_ configuration: WorkerConfiguration.Broadcasts) {
    self.configuration = configuration
  }

  var isBusy: Bool { !open.isEmpty }

  mutating func advance(
    _ step: Int, _ flow: Flow, _ partitions: [Int], _ cpu: inout Station, _ lanes: inout [FlowWorker.Lane]
  ) {
    close(step, flow)
    begin(step, flow, partitions)
    for index in open.indices {
      guard step >= open[index].ready, index == 0 || open[index - 1].isExhausted else { break }
      let most = index == 0 ? .max : configuration.headStart - open[index].handed
      handOver(index, most: most, step, flow, &cpu, &lanes)
      settle(index, step, flow)
    }
  }

  /// Opens pages of segments that have none open.
  private mutating func begin(_ step: Int, _ flow: Flow, _ partitions: [Int]) {
    for offset in partitions.indices where open.count < 2 {
      let partition = partitions[(step + offset) % partitions.count]
      for segment in flow.partitions[partition].segments.indices where open.count < 2 {
        let state = flow.partitions[partition].segments[segment]
        guard state.pages > 0, !state.isBusy else { continue }
        flow.partitions[partition].segments[segment].isBusy = true
        var (rest, left, share) = ([Int](), state.devicesPerPage, 1.0)
        for service in flow.services {
          let count = min(left, Int(clamping: (Double(left) * min(1, service.share / max(share, 1e-9))).rounded()))
          rest.append(count)
          (left, share) = (left - count, share - service.share)
        }
        let questions = (state.devicesPerPage + configuration.lookUpPage - 1) / configuration.lookUpPage
        flow.registry.work(
          Double(state.devicesPerPage) * flow.profile.costs.pageDevice
            + Double(questions) * flow.profile.costs.request)
        flow.counts.lookUpRequests += questions
        let ready = step + flow.steps(flow.registry.latency * World.Time(questions))
        open.append(Page(partition: partition, segment: segment, rest: rest, ready: ready))
      }
    }
  }

  private mutating func handOver(
    _ index: Int, most: Int, _ step: Int, _ flow: Flow, _ cpu: inout Station, _ lanes: inout [FlowWorker.Lane]
  ) {
    var most = min(most, cpu.allowance(cost: flow.profile.costs.broadcast))
    for lane in lanes.indices {
      let flying = lanes[lane].broadcastAnswers.count
      let room = min(
        configuration.maximumBroadcastPushesPerSender - flying, lanes[lane].places - lanes[lane].answers.count - flying)
      let count = min(open[index].rest[lane], room, most)
      guard count > 0 else { continue }
      most -= count
      open[index].rest[lane] -= count
      open[index].handed += count
      cpu.work(Double(count) * flow.profile.costs.broadcast)
      for _ in 0..<count {
        let delay = flow.steps(flow.services[lane].answerTime())
        lanes[lane].broadcastAnswers.add(1, in: delay, after: step)
        open[index].answered = max(open[index].answered, step + delay)
      }
    }
  }

  /// When every push is answered: the status record and the registry's note.
  private mutating func settle(_ index: Int, _ step: Int, _ flow: Flow) {
    guard open[index].isExhausted, step >= open[index].answered, open[index].finished == nil else { return }
    flow.statuses += 1
    flow.registry.work(flow.profile.costs.request)
    let note = flow.registry.latency + World.Time(clamping: flow.profile.costs.transaction)
    open[index].finished = step + flow.steps(flow.kafka.latency + note)
  }

  private mutating func close(_ step: Int, _ flow: Flow) {
    open.removeAll { page in
      guard let finished = page.finished, step >= finished else { return false }
      flow.counts.pages += 1
      flow.counts.devices += page.handed
      flow.partitions[page.partition].segments[page.segment].pages -= 1
      flow.partitions[page.partition].segments[page.segment].isBusy = false
      return true
    }
  }

  /// Leaves the open pages to the next owners of their segments. Returns how many pushes they repeat.
  mutating func giveUp(_ flow: Flow) -> Int {
    for page in open { flow.partitions[page.partition].segments[page.segment].isBusy = false }
    defer { open = [] }
    return open.reduce(0) { $0 + $1.handed }
  }
}
