import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// Sends, at once or later.
struct SendRoutes: Sendable {
  let operations: FrontEndOperations
  let testSends: TestSends

  init(_ operations: FrontEndOperations) {
    self.operations = operations
    testSends = TestSends(operations: operations)
  }

  var routes: [AzureRoute] {
    [
      AzureRoute(.post, "messages", .send) { try await send($0, by: $1) },
      AzureRoute(.post, "messages/$batch", .send) { try await sendBatch($0, by: $1) },
      AzureRoute(.post, "schedulednotifications", .send) { try await schedule($0, by: $1) },
      AzureRoute(.delete, "schedulednotifications/{id}", .send) { try await cancel($0, by: $1) },
    ]
  }

  private func send(_ request: AzureRequest, by caller: Caller) async throws -> Answer {
    let body = try await request.body(upTo: operations.maximumBodySize)
    let headers = request.original.headers.fields
    let notification = try Notification(of: headers, body: body, at: operations.clock.now())
    var (fields, handle): (SendFields, String?) = (notification.fields, nil)
    if request.has("direct") {
      guard let device = headers[.deviceHandle] else {
        throw Refusal(.malformedRequest, "The header ServiceBusNotification-DeviceHandle is missing.")
      }
      handle = device
      fields.audience = try notification.audience(ofDevice: device)
    } else {
      // It would go to everyone.
      guard headers[.deviceHandle] == nil else { throw Self.handleWithoutDirect }
      fields.audience = try notification.audience()
    }
    let id = try await operations.send(
      fields, identifiedBy: ["azure/messages", handle ?? ""] + notification.identity, by: caller, request.original)
    let location = request.location("messages/\(id)", flags: handle == nil ? [] : ["direct"])
    guard request.has("test") else { return AzureAnswer.empty(.created, location: location) }
    let outcome = await testSends.outcome(of: id, to: handle, for: caller)
    var response = AzureAnswer.document(outcome.document, status: .created)
    response.headers[.location] = location
    return response
  }

  /// Sends to each of several devices: a send for each, under one id.
  private func sendBatch(_ request: AzureRequest, by caller: Caller) async throws -> Answer {
    let body = try await request.body(upTo: operations.maximumBatchSize)
    let headers = request.original.headers.fields
    let batch = try DirectBatch(body, type: headers[.contentType] ?? "")
    guard batch.notification.count <= operations.maximumBodySize else {
      throw Refusal(.tooLarge, "The notification has more than \(operations.maximumBodySize) bytes.")
    }
    let notification = try Notification(of: headers, body: batch.notification, at: operations.clock.now())
    var seen: Set<Audience> = []
    let sends = try batch.handles.compactMap { handle -> SendFields? in
      var fields = notification.fields
      let device = try notification.audience(ofDevice: handle)
      fields.audience = device
      return seen.insert(device).inserted ? fields : nil
    }
    let id = try await operations.send(
      each: sends, identifiedBy: ["azure/batch"] + notification.identity + batch.handles, by: caller, request.original)
    let notificationID = NotificationID(id, count: sends.count)
    return AzureAnswer.empty(
      .created, location: request.location("messages/$batch/\(notificationID)", flags: ["direct"]))
  }

  private func schedule(_ request: AzureRequest, by caller: Caller) async throws -> Answer {
    let body = try await request.body(upTo: operations.maximumBodySize)
    let headers = request.original.headers.fields
    guard let time = headers[.scheduleTime] else {
      throw Refusal(.malformedRequest, "The header ServiceBusNotification-ScheduleTime is missing.")
    }
    guard let moment = AzureTime.read(time) else {
      throw Refusal(
        .malformedRequest, "ServiceBusNotification-ScheduleTime must be a date and time such as 2030-01-02T03:04:05.")
    }
    let notification = try Notification(of: headers, body: body, at: max(moment, operations.clock.now()))
    guard headers[.deviceHandle] == nil, !request.has("direct") else {
      throw Refusal(.malformedRequest, "A notification for one device cannot be scheduled.")
    }
    var fields = notification.fields
    fields.audience = try notification.audience()
    let id = try await operations.send(
      fields, heldUntil: moment, identifiedBy: ["azure/scheduled", "\(moment)"] + notification.identity, by: caller,
      request.original)
    return AzureAnswer.empty(.created, location: request.location("schedulednotifications/\(id)"))
  }

  private static let handleWithoutDirect = Refusal(
    .malformedRequest, "ServiceBusNotification-DeviceHandle needs the parameter direct.")

  private func cancel(_ request: AzureRequest, by caller: Caller) async throws -> Answer {
    let unknown = Refusal(.notFound, "The scheduled notification does not exist, or it is due.")
    guard let id = request.parameters.first.flatMap({ SendID($0) }) else { throw unknown }
    do {
      try await operations.cancelScheduled(id, by: caller, request.original)
    } catch let refusal as Refusal where refusal.code == .notFound || refusal.code == .alreadyEnded {
      throw unknown
    }
    return AzureAnswer.empty(.ok)
  }
}
