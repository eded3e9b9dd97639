import FanfareCore
import FrontEnd
import HTTPTypes
import HummingbirdCore

/// Sends.
struct SendRoutes: Sendable {
  let operations: FrontEndOperations

  init(_ operations: FrontEndOperations) { self.operations = operations }

  var routes: [AzureRoute] {
    [AzureRoute(.post, "messages", .send) { try await send($0, by: $1) }]
  }

  private func send(_ request: AzureRequest, by caller: Caller) async throws -> Response {
    let body = try await request.body(upTo: operations.maximumBodySize)
    let notification = try Notification(of: request.original.request.headers, body: body)
    var fields = notification.fields
    fields.audience = try notification.audience(of: request)
    let id = try await operations.send(
      fields, identifiedBy: ["azure/messages"] + notification.identity, by: caller, request.original)
    return AzureAnswer.empty(.created, location: request.location("messages/\(id)"))
  }
}
