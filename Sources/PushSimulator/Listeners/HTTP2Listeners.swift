import HTTP2Client
import HTTP2Server
import Logging
import NIOCore
import NIOSSL

/// The listeners that speak HTTP/2: APNs and FCM.
enum HTTP2Listeners {
  /// APNs: one stream at a time until a push has succeeded.
  static func apns(
    _ service: APNsService, faults: FaultRegistry, configuration: SimulatorConfiguration, tls: TLSConfiguration,
    group: any EventLoopGroup, logger: Logger
  ) -> HTTP2Server {
    var server = HTTP2ServerConfiguration(host: configuration.host, port: configuration.apnsPort, tls: tls)
    server.maximumConcurrentStreams = configuration.apnsInitialStreams
    server.refusesHandshake = { faults.refusesHandshake(of: .apns) }
    return HTTP2Server(configuration: server, eventLoopGroup: group, logger: logger) { incoming, responder in
      var request = APNsRequest(body: incoming.body)
      request.method = incoming.method
      request.path = incoming.path
      for (name, value) in incoming.headers { request.add(name, value) }
      responder.perform(service.react(to: request, on: responder.connection.id), goAwayReason: shutdown)
    }
  }

  /// FCM.
  static func fcm(
    _ service: FCMService, faults: FaultRegistry, configuration: SimulatorConfiguration, tls: TLSConfiguration,
    group: any EventLoopGroup, logger: Logger
  ) -> HTTP2Server {
    var server = HTTP2ServerConfiguration(host: configuration.host, port: configuration.fcmPort, tls: tls)
    server.maximumConcurrentStreams = configuration.fcmStreams
    server.refusesHandshake = { faults.refusesHandshake(of: .fcm) }
    return HTTP2Server(configuration: server, eventLoopGroup: group, logger: logger) { incoming, responder in
      var request = FCMRequest(body: incoming.body)
      request.method = incoming.method
      request.path = incoming.path
      request.authority = incoming.authority
      for (name, value) in incoming.headers { request.add(name, value) }
      responder.perform(service.react(to: request), goAwayReason: maximumAge)
    }
  }

  /// What APNs says in a GOAWAY, and what FCM does.
  private static let shutdown = Array(#"{"reason":"Shutdown"}"#.utf8)
  private static let maximumAge = Array("max_age".utf8)
}
