package import AsyncHTTPClient
package import FanfareCore
import FoundationEssentials
import NIOHTTP1

/// Builds requests to channels.
package struct WNSRequestWriter: Sendable {
  private let connectTo: (host: String, port: Int)?

  /// Requests that go to the channel's host, or to `connectTo` (see `WNSConfiguration.connectTo`).
  package init(connectTo: (host: String, port: Int)? = nil) {
    self.connectTo = connectTo
  }

  /// The request for a push; nil when the channel's URI would not arrive byte for byte as it is.
  package func request(for push: Push, channel: ChannelURI, token: String, now: UnixTime) -> HTTPClient.Request? {
    let target = connectTo.map { "\($0.host):\($0.port)" } ?? channel.host
    let url = "https://\(target)\(channel.pathAndQuery)"
    var headers = HTTPHeaders()
    if connectTo != nil { headers.add(name: "host", value: channel.host) }
    headers.add(name: "authorization", value: "Bearer \(token)")
    for field in push.rendering.headers { headers.add(name: field.name, value: field.value) }
    headers.add(name: "ms-cv", value: WNSCorrelation.vector(of: push.id))
    headers.add(name: "x-wns-ttl", value: String(max((push.expiresAt - now).components.seconds, 1)))
    do {
      let request = try HTTPClient.Request(url: url, method: .POST, headers: headers, body: .bytes(push.rendering.body))
      return request.url.absoluteString == url ? request : nil
    } catch {
      // What is no URL to the client is no channel.
      return nil
    }
  }
}
