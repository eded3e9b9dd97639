import FanfareCore
import FrontEnd

/// Sends whose answer tells the result of each device.
struct TestSends: Sendable {
  /// The longest wait for the results.
  static let patience: Duration = .seconds(10)
  /// The pause between two looks at the report. The ledger writes in batches, several times a second.
  private static let interval: Duration = .milliseconds(100)

  let operations: FrontEndOperations

  /// Waits until a send is settled, at most for `patience`, and returns the outcomes reported so far.
  ///
  /// `handle` is that of the device of a direct send. Never throws: the send is accepted, and a client would repeat a
  /// request that failed.
  func outcome(of send: SendID, to handle: String?, for caller: Caller) async -> NotificationOutcome {
    do { return try await wait(for: send, handle, caller) } catch { return NotificationOutcome() }
  }

  private func wait(for send: SendID, _ handle: String?, _ caller: Caller) async throws -> NotificationOutcome {
    let deadline = ContinuousClock.now + Self.patience
    while true {
      let report = try await operations.report(of: send, hub: caller.hubName)
      if let report, report.settledAt != nil || ContinuousClock.now >= deadline {
        return try await outcome(report, handle)
      }
      guard ContinuousClock.now < deadline else { return NotificationOutcome() }
      try await Task.sleep(for: Self.interval)
    }
  }

  private func outcome(_ report: SendReport, _ handle: String?) async throws -> NotificationOutcome {
    var outcome = NotificationOutcome()
    for (kind, count) in report.counts.values.flatMap(\.self) {
      if kind == .delivered { outcome.success += count } else { outcome.failure += count }
    }
    for device in report.devices ?? [] {
      // A device that is gone is no longer registered.
      let row = try await operations.registry.registration(device.registration, hub: report.hub)
      let service = PushServiceName(device.platform, row?.profile?.azure ?? [:], isOlder: false)
      outcome.results.append(
        NotificationOutcome.Result(
          device: device, service: service, handle: handle ?? row.map { service.azureForm(of: $0.handle) }))
    }
    return outcome
  }
}

/// The results of a test send.
struct NotificationOutcome: Sendable {
  var success = 0
  var failure = 0
  /// Empty for a send to very many.
  var results: [Result] = []

  struct Result: Sendable {
    let device: DeviceResult
    let service: PushServiceName
    /// Nil if it is not known any more.
    let handle: String?
  }

  var document: [UInt8] {
    var document: [UInt8] = []
    document.appendElement("NotificationOutcome", attributes: XMLNamespace.ofDescriptions) { content in
      content.appendElement("Success", String(success))
      content.appendElement("Failure", String(failure))
      content.appendElement("Results") { results in
        for result in self.results {
          results.appendElement("RegistrationResult") {
            $0.appendElement("ApplicationPlatform", result.service.resultName)
            $0.appendElement("PnsHandle", result.handle ?? "")
            $0.appendElement("RegistrationId", result.device.registration.description)
            $0.appendElement("Outcome", Self.text(of: result.device))
          }
        }
      }
    }
    return document
  }

  private static func text(of device: DeviceResult) -> String {
    let reason = device.reason.isEmpty ? "" : " (\(device.reason))"
    return switch device.outcome {
    case .delivered: "The Notification was successfully sent to the Push Notification System"
    case .deviceGone: "The Push Notification System handle for the registration is invalid"
    case .rejected: "The Push Notification System refused the notification\(reason)"
    case .expired: "The notification expired before the Push Notification System took it\(reason)"
    case .failed: "The Push Notification System could not take the notification\(reason)"
    case .unconfirmed: "The Push Notification System did not confirm the notification\(reason)"
    }
  }
}
