package import FanfareCore
import HTTPTypes
import Hummingbird
import NIOCore

/// What all processes of the deployment report about themselves, aggregated.
package protocol PulseSource: Sendable {
  /// Everything that is known, with the last 15 minutes, as callers of a hub may see it: a JSON document, made at most
  /// once a second.
  func snapshot(of hub: HubName) async throws -> [UInt8]

  /// Waits for the next second, at most about two, and returns the state without the past: a JSON document without line
  /// breaks. Returns nil if too many callers wait.
  func next(of hub: HubName) async throws -> [UInt8]?
}

/// `GET /api/pulse`: the state of the deployment now, as JSON or as an event of a stream.
///
/// An answer of the type `text/event-stream` has one event and ends; the client asks again at once, as browsers do by
/// themselves. So a stream occupies nothing of the server between two events, passes every proxy, and delays no shutdown.
struct PulseRoutes: Sendable {
  let access: AccessControl
  /// Nil if this front end does not read the pulse topic.
  let source: (any PulseSource)?

  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.on(.readPulse, admittedBy: access) { request, _, caller in
      guard let source else { throw Refusal(.notFound, "this server does not serve the pulse: see console.enabled") }
      let accepted = request.headers[.accept] ?? ""
      guard accepted.contains("text/event-stream") else {
        return .json(try await source.snapshot(of: caller.hub.name), isPrivate: true)
      }
      guard let state = try await source.next(of: caller.hub.name) else {
        throw Refusal(.overloaded, "too many callers wait for the pulse")
      }
      let event = Array("retry: 0\ndata: ".utf8) + state + Array("\n\n".utf8)
      return Response(
        status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: event)))
    }
  }
}
