import FanfareCore

/// The state and the outcomes of a notification, from the reports of its sends.
struct NotificationDetails: Sendable {
  /// Azure's names of the states.
  enum State: String {
    case enqueued = "Enqueued"
    case processing = "Processing"
    case scheduled = "Scheduled"
    case completed = "Completed"
    case noTarget = "NoTargetFound"
    case abandoned = "Abandoned"
    // So spelled in Azure's documentation and the Java client, which knows no other spelling.
    case canceled = "Canceled"
  }

  let id: NotificationID
  let location: String
  /// In the order of the sends; nil for those without a report yet. A single send has one.
  let reports: [SendReport?]
  /// Where the devices are listed that did not get it; nil: nowhere.
  var errorsURL: String?
  /// Whether the client knows no FcmV1.
  var isOlder = false
  /// The devices of Firebase that are of the kind Gcm; nil if the kinds are not known.
  var gcmDevices: Set<RegistrationID>?

  /// That of the sends together: the earliest as long as they are not all at an end.
  var state: State {
    let states = reports.map { $0.map(Self.state) ?? .enqueued }
    for open in [State.scheduled, .processing, .enqueued] where states.contains(open) {
      // Some are at an end, others not begun.
      return states.allSatisfy { $0 == open } ? open : .processing
    }
    for end in [State.completed, .abandoned, .canceled] where states.contains(end) { return end }
    return .noTarget
  }

  private static func state(of report: SendReport) -> State {
    switch report.state {
    case .scheduled: .scheduled
    case .accepted: report.times.isEmpty && report.counts.isEmpty ? .enqueued : .processing
    case .settled: .completed
    case .noTarget: .noTarget
    case .expired, .deadLettered: .abandoned
    case .cancelled: .canceled
    }
  }

  /// The document, in the order of .NET's data contract.
  var document: [UInt8] {
    let known = reports.compactMap(\.self)
    var document: [UInt8] = []
    document.appendElement("NotificationDetails", attributes: XMLNamespace.ofDescriptions) { content in
      content.appendElement("NotificationId", id.description)
      content.appendElement("Location", location)
      content.appendElement("State", state.rawValue)
      func append(_ name: String, _ time: UnixTime?) {
        if let time { content.appendElement(name, time.description) }
      }
      append("EnqueueTime", known.compactMap(\.acceptedAt).min() ?? id.acceptedAt)
      append("StartTime", known.compactMap { $0.times.consumed ?? $0.times.pushed }.min())
      if known.count == reports.count, known.allSatisfy({ $0.settledAt != nil }) {
        append("EndTime", known.compactMap(\.settledAt).max())
      }
      if reports.count == 1, let audience = known.first?.audience, audience != Audience.everyone.text {
        content.appendElement("Tags", audience)
      }
      let outcomes = Self.outcomes(of: known)
      let (gcm, fcmV1) = divided(outcomes[.fcm])
      let services = Platform.allCases.flatMap { platform in
        platform.vocabulary.azure.filter { kind in
          switch (platform, kind) {
          case (.fcm, PushServiceName.gcm.kind): gcm != nil && (isOlder || gcmDevices != nil)
          case (.fcm, _): fcmV1 != nil
          default: outcomes[platform] != nil
          }
        }
      }
      if !services.isEmpty {
        content.appendElement("TargetPlatforms", services.map { $0.name.lowercased() }.joined(separator: ","))
      }
      func append(_ counts: [String: Int]?, _ name: String) {
        guard let counts else { return }
        content.appendElement("\(name)OutcomeCounts") { list in
          for (outcome, count) in counts.sorted(by: { $0.key < $1.key }) {
            list.appendElement("Outcome") {
              $0.appendElement("Name", outcome)
              $0.appendElement("Count", String(count))
            }
          }
        }
      }
      append(outcomes[.apns], "Apns")
      append(outcomes[.wns], "Wns")
      append(gcm, "Gcm")
      if let errorsURL { content.appendElement("PnsErrorDetailsUri", errorsURL) }
      append(fcmV1, "FcmV1")
      for platform in Platform.allCases where ![.apns, .wns, .fcm].contains(platform) {
        append(outcomes[platform], platform.vocabulary.azure[0].outcomes)
      }
    }
    return document
  }

  /// The outcomes at Firebase by kind. A client of an older version knows Gcm alone; of a send to very many devices the
  /// kinds are not known, and a client that sends in the format gcm reads the first ones, one with fcmv1 the others.
  private func divided(_ all: [String: Int]?) -> (gcm: [String: Int]?, fcmV1: [String: Int]?) {
    guard let all, !isOlder else { return (all, nil) }
    guard let gcmDevices else { return (all, all) }
    var (gcm, rest): ([String: Int], [String: Int]) = ([:], all)
    for device in reports.flatMap({ $0?.devices ?? [] }) where gcmDevices.contains(device.registration) {
      let name = Self.name(of: device.outcome, reason: device.reason)
      guard let left = rest[name], left > 0 else { continue }
      gcm[name, default: 0] += 1
      rest[name] = left > 1 ? left - 1 : nil
    }
    return (gcm.isEmpty ? nil : gcm, rest.isEmpty ? nil : rest)
  }

  /// Whether any of the devices that are listed did not get the push.
  var hasErrors: Bool { reports.contains { $0?.failedDevices.isEmpty == false } }

  /// The devices that did not get the push: documents one after the other, as those of the feedback.
  var errors: [UInt8] {
    var documents: [UInt8] = []
    for device in reports.flatMap({ $0?.failedDevices ?? [] }) {
      documents.appendElement("PnsErrorDetails", attributes: XMLNamespace.ofDescriptions) {
        $0.appendElement("RegistrationId", device.registration.description)
        let form = gcmDevices?.contains(device.registration) == true ? PushServiceName.gcm.form : [:]
        $0.appendElement(
          "Platform", PushServiceName(device.platform, form, isOlder: isOlder).resultName)
        $0.appendElement("NotificationSystemError", Self.name(of: device.outcome, reason: device.reason))
        if !device.reason.isEmpty { $0.appendElement("Reason", device.reason) }
      }
      documents.append(UInt8(ascii: "\n"))
    }
    return documents
  }

  /// The devices per platform and Azure's name of an outcome.
  static func outcomes(of reports: [SendReport]) -> [Platform: [String: Int]] {
    var outcomes: [Platform: [String: Int]] = [:]
    for report in reports {
      // Those whose reasons are known, then the rest of each outcome.
      var rest = report.counts
      for (kind, count) in report.failures.entries {
        outcomes[kind.platform, default: [:]][name(of: kind.outcome, reason: kind.reason), default: 0] += count
        rest[kind.platform]?[kind.outcome]? -= count
      }
      for (platform, counts) in rest {
        for (outcome, count) in counts where count > 0 {
          outcomes[platform, default: [:]][name(of: outcome, reason: ""), default: 0] += count
        }
      }
    }
    return outcomes
  }

  private static func name(of outcome: DeviceResult.Outcome, reason: String) -> String {
    switch (outcome, reason) {
    case (.delivered, _): "Success"
    case (.deviceGone, "BadDeviceToken"), (.deviceGone, "BadChannelURI"), (.deviceGone, "INVALID_ARGUMENT"):
      "BadChannel"
    case (.deviceGone, "DeviceTokenNotForTopic"), (.deviceGone, "SENDER_ID_MISMATCH"): "WrongToken"
    case (.deviceGone, _): "ExpiredChannel"
    case (.rejected, "PayloadTooLarge"): "InvalidNotificationSize"
    case (.rejected, _): "PnsInterfaceError"
    case (.expired, _): "AbandonedNotificationMessages"
    case (.failed, "TooManyRequests"), (.failed, "QUOTA_EXCEEDED"): "Throttled"
    case (.failed, _): "PnsUnavailable"
    case (.unconfirmed, _): "PnsServerError"
    }
  }
}

extension SendReport {
  /// Empty if the ledger does not list the devices.
  fileprivate var failedDevices: [DeviceResult] { devices?.filter { $0.outcome != .delivered } ?? [] }
}
