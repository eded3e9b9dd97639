import FanfareCore
import HTTPTypes
import Hummingbird
import NIOCore
import ServiceLifecycle

/// The routes for inspecting devices and ordering faults. They need no authentication, because the listener is bound to
/// the local machine.
struct AdminRoutes: Sendable {
  let simulator: PushSimulator

  /// The most devices on one page.
  static let pageLimit = 1000

  func router() -> Router<ChannelContext> {
    let router = Router(context: ChannelContext.self)
    router.get("/healthz") { _, _ in JSONResponse(Array(#"{"status":"ok"}"#.utf8)) }
    router.get("/endpoints") { _, _ in try await endpoints() }
    addDeviceRoutes(to: router)
    addFaultRoutes(to: router)
    router.post("/tokens/expire") { request, _ in
      simulator.expireTokens(of: try service(request.uri.queryParameters["service"]))
      return Response(status: .noContent)
    }
    router.post("/keys/replace") { request, _ in
      try await replaceKey(of: try service(request.uri.queryParameters["service"]))
    }
    return router
  }

  /// The new key as its vendor's files, by name. The sender is refused until it reads them.
  private func replaceKey(of service: SimulatedService?) async throws -> [String: String] {
    guard let service, service == .apns || service == .fcm else {
      throw HTTPError(.badRequest, message: "service must be one of apns, fcm")
    }
    let renewed = try simulator.replaceKey(of: service)
    let files =
      service == .apns ? try renewed.apnsFiles() : try renewed.googleFiles(endpoints: try await simulator.ready())
    return files.mapValues { String(decoding: $0, as: UTF8.self) }
  }

  private func addDeviceRoutes(to router: Router<ChannelContext>) {
    router.get("/devices") { request, _ in try devices(request) }
    router.delete("/devices") { _, _ in
      simulator.store.reset()
      return Response(status: .noContent)
    }
    router.get("/devices/:platform/**") { request, context in
      let (platform, handle) = try device(request, context)
      guard simulator.store.received(platform, handle) != nil else {
        throw HTTPError(.notFound, message: "no such device")
      }
      return JSONResponse(StoreJSON.notifications(simulator.store.notifications(platform, handle)))
    }
    router.delete("/devices/:platform/**") { request, context in
      let (platform, handle) = try device(request, context)
      guard simulator.store.remove(platform, handle) else { throw HTTPError(.notFound, message: "no such device") }
      return Response(status: .noContent)
    }
    router.get("/counts") { _, _ in JSONResponse(StoreJSON.counts(simulator.store.counts())) }
    router.get("/events") { request, _ in try events(request) }
  }

  private func addFaultRoutes(to router: Router<ChannelContext>) {
    router.get("/prefixes") { _, _ in JSONResponse(StoreJSON.prefixes()) }
    router.get("/faults") { _, _ in simulator.faults.list.map(FaultDocument.init) }
    router.post("/faults") { request, context in
      let document = try await request.decode(as: FaultDocument.self, context: context)
      let fault: Fault
      do throws(FaultDocument.Invalid) { fault = try document.fault() } catch {
        throw HTTPError(.badRequest, message: error.description)
      }
      guard let id = simulator.faults.add(fault) else {
        throw HTTPError(.conflict, message: "there are too many faults in force; remove some")
      }
      var answer = FaultDocument(fault)
      answer.id = id
      return EditedResponse(status: .created, headers: [.location: "/faults/\(id)"], response: answer)
    }
    router.delete("/faults") { _, _ in
      simulator.faults.removeAll()
      return Response(status: .noContent)
    }
    router.delete("/faults/:id") { _, context in
      guard simulator.faults.remove(try context.parameters.require("id", as: Int.self)) else {
        throw HTTPError(.notFound, message: "no such fault")
      }
      return Response(status: .noContent)
    }
  }

  private func endpoints() async throws -> JSONResponse {
    let endpoints = try await simulator.ready()
    return JSONResponse(StoreJSON.endpoints(endpoints, tenant: simulator.credentials.windows.tenantID))
  }

  private func devices(_ request: Request) throws -> JSONResponse {
    let query = request.uri.queryParameters
    let platform = try query["platform"].map { try self.platform($0) }
    let limit = query["limit"].map { Int($0) ?? 0 } ?? 100
    guard (1...Self.pageLimit).contains(limit) else {
      throw HTTPError(.badRequest, message: "limit must be 1 to \(Self.pageLimit)")
    }
    var after: (Platform, String)?
    if let cursor = query["after"].map(String.init) {
      let parts = cursor.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { throw HTTPError(.badRequest, message: "after must be the next of an earlier page") }
      after = (try self.platform(parts[0]), String(parts[1]))
    }
    return JSONResponse(
      StoreJSON.devices(simulator.store.devices(platform: platform, after: after, limit: limit), limit: limit))
  }

  private func events(_ request: Request) throws -> Response {
    let platform = try request.uri.queryParameters["platform"].map { try self.platform($0) }
    guard simulator.store.hasRoomForObserver else {
      throw HTTPError(.serviceUnavailable, message: "too many streams are open")
    }
    let stream = simulator.store.events()
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
      body: ResponseBody { writer in
        // A comment, which tells the caller that it misses nothing from here on.
        try await writer.write(ByteBuffer(string: ": watching\n\n"))
        try await request.body.consumeWithCancellationOnInboundClose { _ in
          for await notification in stream.cancelOnGracefulShutdown()
          where platform == nil || notification.platform == platform {
            try await writer.write(ByteBuffer(bytes: StoreJSON.event(notification)))
          }
        }
        try await writer.finish(nil)
      })
  }

  private func device(_ request: Request, _ context: ChannelContext) throws -> (Platform, String) {
    let platform = try self.platform(try context.parameters.require("platform"))
    // From the path as it was sent: a handle may contain escaped slashes, which the router would unescape.
    let parts = (request.head.path ?? "").prefix { $0 != "?" }.split(separator: "/", maxSplits: 2)
    guard parts.count == 3 else { throw HTTPError(.badRequest, message: "the handle is missing") }
    return (platform, PercentEncoding.decode(parts[2].utf8))
  }

  private func platform(_ name: some StringProtocol) throws -> Platform {
    guard let platform = Platform(name: String(name)) else {
      throw HTTPError(.badRequest, message: "platform must be one of apns, fcm, wns")
    }
    return platform
  }

  private func service(_ name: Substring?) throws -> SimulatedService? {
    guard let name else { return nil }
    guard let service = SimulatedService(rawValue: String(name)) else {
      let names = SimulatedService.allCases.map(\.rawValue).joined(separator: ", ")
      throw HTTPError(.badRequest, message: "service must be one of \(names)")
    }
    return service
  }
}

/// An answer whose body is JSON already.
struct JSONResponse: ResponseGenerator {
  private let body: ByteBuffer

  init(_ bytes: [UInt8]) { body = ByteBuffer(bytes: bytes) }

  func response(from request: Request, context: some RequestContext) -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/json; charset=utf-8"], body: ResponseBody(byteBuffer: body))
  }
}
