package import FanfareCore
import HTTPServer
import HTTPTypes
import NIOCore
import ServiceLifecycle

/// The reports of all processes of the deployment about themselves, aggregated.
package protocol PulseSource: Sendable {
  /// Everything that is known, with the last 15 minutes, as callers of a hub may see it: a JSON document, made at most
  /// once a second.
  func snapshot(of hub: HubName) async throws -> [UInt8]

  /// Waits for the next second, at most about two, and returns the state without the past: a JSON document without line
  /// breaks. Returns nil if too many callers wait.
  func next(of hub: HubName) async throws -> [UInt8]?
}

/// `GET /api/pulse`: the state of the deployment now, as JSON or as a stream of events.
///
/// An answer of the type `text/event-stream` has an event each second. It ends after some minutes, when the server
/// stops, and when the caller would not be admitted any more; the client asks again at once, as browsers do by
/// themselves.
struct PulseRoutes: Sendable {
  /// So that connections move to other front ends.
  private static let lifetime = Duration.seconds(300)

  let access: AccessControl
  /// Nil if this front end does not read the pulse topic.
  let source: (any PulseSource)?

  private static let readers = [Scope.readAll, .operate]

  var routes: [Route] {
    var route = Route(.get, "api/pulse", Self.readers, takesRead: false) { try await read($0, by: $1) }
    // An open page asks for the pulse every second, also while it is unattended.
    route.renewsSession = false
    return [route]
  }

  private func read(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    guard let source else { throw Refusal(.notFound, "this server does not serve the pulse: see console.enabled") }
    let accepted = exchange.headers[.accept] ?? ""
    guard accepted.contains("text/event-stream") else {
      return .json(try await source.snapshot(of: caller.hub.name), isPrivate: true)
    }
    // Before the head: if too many wait, the caller must know it.
    guard let first = try await source.next(of: caller.hub.name) else {
      throw Refusal(.overloaded, "too many callers wait for the pulse")
    }
    let body = AnswerBody.inParts { [access] writer in
      var state = first
      var event = ByteBuffer(string: "retry: 0\n")
      let end = ContinuousClock.now + Self.lifetime
      while true {
        event.writeString("data: ")
        event.writeBytes(state)
        event.writeString("\n\n")
        try await writer.write(event)
        event = ByteBuffer()
        guard ContinuousClock.now < end, !Task.isShuttingDownGracefully, !Task.isCancelled,
          await access.admits(exchange, anyOf: Self.readers),
          let next = try await source.next(of: caller.hub.name)
        else { break }
        state = next
      }
    }
    return Answer(
      status: .ok,
      headers: [
        .contentType: "text/event-stream", .cacheControl: "no-store",
        // nginx collects what a server sends unless it is told so.
        .accelBuffering: "no",
      ], body: body)
  }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; this literal is valid.
  fileprivate static let accelBuffering = HTTPField.Name("X-Accel-Buffering")!
}
