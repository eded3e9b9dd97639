import FanfareCore

extension BroadcastQuestion {
  /// Asks the stores. Throws their errors.
  func ask(
    _ registry: any DeviceRegistry, _ broadcasts: any BroadcastStore & PushQuotaStore, limits: WorkerConfiguration,
    at now: UnixTime
  ) async throws -> BroadcastAnswer.Outcome {
    switch self {
    case .survey(_, let query, let broadcast, let createdBefore):
      var devices: AudiencePage?
      if let query {
        devices = try await registry.page(
          query, of: .whole, createdBefore: createdBefore, limit: limits.undividedDevices)
      }
      // After the devices: a small audience is dispatched as soon as this is known.
      let progress = try await broadcasts.progress(of: broadcast, at: now)
      return .survey(devices, progress?.control.state ?? .running, pages: progress?.pages ?? 0)
    case .plan(_, let broadcast, let pages):
      let plan = try await broadcasts.plan(broadcast, pages: pages, at: now)
      return .plan(pages: plan.pages, isAnnounced: plan.isAnnounced)
    case .announce(_, let broadcast):
      try await broadcasts.announce(broadcast)
      return .noted
    case .finishedPages(_, let broadcast, let range):
      return .pages(try await broadcasts.finishedPages(of: broadcast, in: range))
    case .page(_, let query, let slice, let createdBefore, _):
      return .devices(try await registry.page(query, of: slice, createdBefore: createdBefore, limit: limits.lookUpPage))
    case .reserve(_, let pushes, let broadcast, let perSecond), .permits(_, let pushes, let broadcast, let perSecond):
      return .moment(try await broadcasts.reserve(pushes, of: broadcast, perSecond: perSecond, at: now))
    case .finish(_, let broadcast, let pages):
      try await broadcasts.finish(pages, of: broadcast, at: now)
      return .noted
    case .courses(let ids):
      return .courses(try await broadcasts.controls(of: ids))
    case .course(_, let broadcast):
      return .courses(try await broadcasts.controls(of: [broadcast]))
    case .steer(let broadcast, let steering):
      return .courses([try await broadcasts.steer(broadcast, steering, at: now)])
    case .quota(_, let pushes, let quota, let lead):
      return .moment(try await broadcasts.reserve(pushes, of: quota, at: now + lead))
    }
  }
}
