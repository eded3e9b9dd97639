import FanfareCore
import Foundation
import HTTPServer
import HTTPTypes
import NIOCore
import ServiceLifecycle

/// The routes for inspecting devices and ordering faults. They need no authentication, because the listener is bound to
/// the local machine.
struct AdminRoutes: Application {
  private typealias Handler = @Sendable (Exchange) async throws -> Answer

  /// A request that is refused; answered as `{"error":{"message":…}}`.
  private struct Refused: Error {
    let status: HTTPResponse.Status
    let message: String

    init(_ status: HTTPResponse.Status, _ message: String) { (self.status, self.message) = (status, message) }
  }

  /// The most devices on one page.
  static let pageLimit = 1000
  private static let maximumBodyBytes = 64 * 1024

  private let simulator: PushSimulator
  private var routes = RouteTable<Handler>()

  init(simulator: PushSimulator) {
    self.simulator = simulator
    let own = self
    let handlers: [(HTTPRequest.Method, String, Handler)] = [
      (.get, "healthz", { _ in .json(Array(#"{"status":"ok"}"#.utf8)) }),
      (.get, "endpoints", { _ in try await own.endpoints() }),
      (.get, "devices", { try own.devices($0) }),
      (
        .delete, "devices",
        { _ in
          simulator.store.reset()
          return Answer(status: .noContent)
        }
      ),
      (.get, "devices/{platform}/{handle...}", { try own.notifications($0) }),
      (.delete, "devices/{platform}/{handle...}", { try own.removeDevice($0) }),
      (.get, "counts", { _ in .json(StoreJSON.counts(simulator.store.counts())) }),
      (.get, "events", { try own.events($0) }),
      (.get, "prefixes", { _ in .json(StoreJSON.prefixes()) }),
      (.get, "faults", { _ in try .document(simulator.faults.list.map(FaultDocument.init)) }),
      (.post, "faults", { try await own.addFault($0) }),
      (
        .delete, "faults",
        { _ in
          simulator.faults.removeAll()
          return Answer(status: .noContent)
        }
      ),
      (.delete, "faults/{id}", { try own.removeFault($0) }),
      (
        .post, "tokens/expire",
        {
          simulator.expireTokens(of: try own.service(of: $0))
          return Answer(status: .noContent)
        }
      ),
      (.post, "keys/replace", { try await own.replaceKey(of: try own.service(of: $0)) }),
    ]
    for (method, pattern, handler) in handlers { routes.add(method, pattern, handler) }
  }

  func begin(_ exchange: inout Exchange) -> Reply {
    guard case .found(let handler, _, let parameters) = routes.find(exchange.method, exchange.target) else {
      return .now(Answer(status: .notFound))
    }
    exchange.parameters = parameters
    let begun = exchange
    return .later { awaited in
      do { return try await handler(begun.awaited(as: awaited.pending)) } catch let refused as Refused {
        let document = JSONWriter.object { $0.object("error") { $0.member("message", refused.message) } }
        return .json(document, status: refused.status)
      }
    }
  }

  func answer(to fault: RequestFault, requestID: String?) -> Answer { Answer(status: .badRequest) }

  /// The new key as its vendor's files, by name. The sender is refused until it reads them.
  private func replaceKey(of service: SimulatedService?) async throws -> Answer {
    guard let platform = service?.platform, let files = try await simulator.replaceKey(of: platform) else {
      throw Refused(.badRequest, "service must be one with a key that can be replaced")
    }
    return try .document(files.mapValues { String(decoding: $0, as: UTF8.self) })
  }

  private func notifications(_ exchange: Exchange) throws -> Answer {
    let (platform, handle) = try device(exchange)
    guard simulator.store.received(platform, handle) != nil else { throw Refused(.notFound, "no such device") }
    return .json(StoreJSON.notifications(simulator.store.notifications(platform, handle)))
  }

  private func removeDevice(_ exchange: Exchange) throws -> Answer {
    let (platform, handle) = try device(exchange)
    guard simulator.store.remove(platform, handle) else { throw Refused(.notFound, "no such device") }
    return Answer(status: .noContent)
  }

  private func addFault(_ exchange: Exchange) async throws -> Answer {
    let fault: Fault
    do {
      let body = try await exchange.body.collect(upTo: Self.maximumBodyBytes) ?? ByteBuffer()
      fault = try JSONDecoder().decode(FaultDocument.self, from: Data(body.readableBytesView)).fault()
    } catch let error as FaultDocument.Invalid {
      throw Refused(.badRequest, error.description)
    } catch {
      throw Refused(.badRequest, "the body must be a fault as JSON")
    }
    guard let id = simulator.faults.add(fault) else {
      throw Refused(.conflict, "there are too many faults in force; remove some")
    }
    var document = FaultDocument(fault)
    document.id = id
    var answer = try Answer.document(document, status: .created)
    answer.headers[.location] = "/faults/\(id)"
    return answer
  }

  private func removeFault(_ exchange: Exchange) throws -> Answer {
    guard let id = exchange.parameters["id"].flatMap({ Int($0) }) else {
      throw Refused(.badRequest, "id must be a number")
    }
    guard simulator.faults.remove(id) else { throw Refused(.notFound, "no such fault") }
    return Answer(status: .noContent)
  }

  private func endpoints() async throws -> Answer {
    let endpoints = try await simulator.ready()
    return .json(StoreJSON.endpoints(endpoints, of: simulator.services))
  }

  private func devices(_ exchange: Exchange) throws -> Answer {
    let query = FormBody(exchange.target.query?.utf8.map { $0 } ?? [])
    let platform = try query["platform"].map { try self.platform($0) }
    let limit = query["limit"].map { Int($0) ?? 0 } ?? 100
    guard (1...Self.pageLimit).contains(limit) else {
      throw Refused(.badRequest, "limit must be 1 to \(Self.pageLimit)")
    }
    var after: (Platform, String)?
    if let cursor = query["after"] {
      let parts = cursor.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { throw Refused(.badRequest, "after must be the next of an earlier page") }
      after = (try self.platform(parts[0]), String(parts[1]))
    }
    return .json(
      StoreJSON.devices(simulator.store.devices(platform: platform, after: after, limit: limit), limit: limit))
  }

  private func events(_ exchange: Exchange) throws -> Answer {
    let query = FormBody(exchange.target.query?.utf8.map { $0 } ?? [])
    let platform = try query["platform"].map { try self.platform($0) }
    guard simulator.store.hasRoomForObserver else {
      throw Refused(.serviceUnavailable, "too many streams are open")
    }
    let stream = simulator.store.events()
    let body = AnswerBody.inParts { writer in
      // A comment, which tells the caller that it misses nothing from here on.
      try await writer.write(ByteBuffer(string: ": watching\n\n"))
      try await exchange.pending?.whileAwaited { [writer] in
        var writer = writer
        for await notification in stream.cancelOnGracefulShutdown()
        where platform == nil || notification.platform == platform {
          try await writer.write(ByteBuffer(bytes: StoreJSON.event(notification)))
        }
      }
    }
    return Answer(status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
  }

  private func device(_ exchange: Exchange) throws -> (Platform, String) {
    let platform = try self.platform(exchange.parameters["platform"] ?? "")
    // As it was sent: a handle may contain escaped slashes.
    return (platform, PercentEncoding.decode((exchange.parameters["handle"] ?? "").utf8))
  }

  private func platform(_ name: some StringProtocol) throws -> Platform {
    guard let platform = Platform(name: String(name)) else {
      let names = Platform.allCases.map(\.name).joined(separator: ", ")
      throw Refused(.badRequest, "platform must be one of \(names)")
    }
    return platform
  }

  private func service(of exchange: Exchange) throws -> SimulatedService? {
    guard let name = FormBody(exchange.target.query?.utf8.map { $0 } ?? [])["service"] else { return nil }
    guard let service = SimulatedService(rawValue: name) else {
      let names = SimulatedService.allCases.map(\.rawValue).joined(separator: ", ")
      throw Refused(.badRequest, "service must be one of \(names)")
    }
    return service
  }
}

extension Answer {
  fileprivate static func json(_ bytes: [UInt8], status: HTTPResponse.Status = .ok) -> Answer {
    Answer(status: status, headers: [.contentType: "application/json; charset=utf-8"], body: bytes)
  }

  fileprivate static func document(_ document: some Encodable, status: HTTPResponse.Status = .ok) throws -> Answer {
    .json(Array(try JSONEncoder().encode(document)), status: status)
  }
}
