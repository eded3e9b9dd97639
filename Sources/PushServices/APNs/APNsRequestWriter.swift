package import FanfareCore
package import HTTP2Client

/// Builds the requests of one batch, which share as much as possible.
package struct APNsRequestWriter {
  private static let path = Array(":path".utf8)
  private static let id = Array("apns-id".utf8)
  private static let expiration = Array("apns-expiration".utf8)
  /// `apns-push-type` and `apns-priority` are among the shared fields.
  private static let sharedFieldCount = 2

  private let fields: APNsCredential.Fields
  private let now: UnixTime
  private let timeout: Duration
  private var scratch: [UInt8] = []
  private var expiry: (moment: UnixTime, text: [UInt8], patience: Duration)?

  /// `now` is the moment at which the requests are made, `timeout` the time each may take.
  package init(fields: APNsCredential.Fields, now: UnixTime, timeout: Duration) {
    self.fields = fields
    self.now = now
    self.timeout = timeout
    scratch.reserveCapacity(96)
  }

  /// Builds the request for a push whose handle is hexadecimal.
  package mutating func request(for push: Push) -> HTTP2Request {
    var headers = HTTP2Headers(reservingFields: 4, bytes: 224)
    scratch.removeAll(keepingCapacity: true)
    scratch.append(contentsOf: "/3/device/".utf8)
    scratch.append(contentsOf: push.handle.utf8)
    // It identifies a device, so intermediaries must not index it (RFC 7541 §6.2.3).
    headers.append(name: Self.path, value: scratch, indexing: .never)
    scratch.removeAll(keepingCapacity: true)
    push.id.append(to: &scratch)
    headers.append(name: Self.id, value: scratch, indexing: .withoutIndexing)
    // Thousands of pushes may have the same expiry, so its text is kept.
    if expiry?.moment != push.expiresAt {
      var text: [UInt8] = []
      text.appendJSON(push.expiresAt.seconds)
      expiry = (push.expiresAt, text, push.expiresAt - now)
    }
    if let expiry { headers.append(name: Self.expiration, value: expiry.text, indexing: .withoutIndexing) }
    for field in push.rendering.headers.dropFirst(Self.sharedFieldCount) {
      headers.append(field.name, field.value, indexing: .withoutIndexing)
    }
    return HTTP2Request(
      ticket: push.ticket,
      shared: fields[APNsRenderer.Class(of: push.rendering)],
      headers: headers,
      body: push.rendering.body,
      timeout: timeout,
      patience: expiry?.patience,
      isBulk: push.isBulk)
  }
}
