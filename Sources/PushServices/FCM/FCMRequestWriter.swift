package import FanfareCore
package import HTTP2

/// Builds the requests of one batch, which share as much as possible.
package struct FCMRequestWriter {
  private let shared: HTTP2Headers
  private let now: UnixTime
  private let timeout: Duration

  /// `shared` are all header fields, `:path` included; `now` is the moment at which the requests are made, `timeout`
  /// the time each may take.
  package init(shared: HTTP2Headers, now: UnixTime, timeout: Duration) {
    self.shared = shared
    self.now = now
    self.timeout = timeout
  }

  /// Builds the request for a push that has not expired.
  package func request(for push: Push, ticket: UInt64) -> HTTP2Request {
    let remaining = push.expiresAt - now
    let body = FCMBody.complete(
      push.rendering, id: push.id, token: push.handle, expiresAt: push.expiresAt,
      timeToLive: remaining.components.seconds)
    return HTTP2Request(
      ticket: ticket, shared: shared, headers: HTTP2Headers(), body: body, timeout: timeout, patience: remaining,
      isBulk: push.isBroadcast)
  }
}

/// The body of one `messages:send` request, completed from a rendering.
///
/// A rendering has a cut inside `data`. There the push's id is inserted, by which an app can recognise a repeated push
/// (FCM has no other field for it), then the device's token. Behind the cut, marks (bytes that JSON cannot contain)
/// stand for the remaining time to live or the id. FCM counts a time to live from the arrival of each request, so it is
/// the time that remains when the request is made. Thus the rendering of a payload does not depend on when it was
/// accepted, and `ProvenPayloads` recognises it.
enum FCMBody {
  /// A byte that stands for a value of each push. The marks are the bytes 1 to 3. Decimal digits behind a mark
  /// for a time are the message's own limit, in seconds since 1970.
  enum Mark: UInt8 {
    /// The expiry of the push, in seconds since 1970.
    case expiry = 1
    /// The remaining time to live in seconds, within FCM's limits.
    case timeToLive = 2
    /// The push's id, as a JSON string.
    case id = 3
  }

  /// Completes a rendering for one device. `timeToLive` is in seconds, rounded down.
  static func complete(
    _ rendering: RenderedPush, id: PushID, token: String, expiresAt: UnixTime, timeToLive: Int64
  ) -> [UInt8] {
    let cut = rendering.handleOffset ?? rendering.body.endIndex
    var body: [UInt8] = []
    body.reserveCapacity(rendering.body.count + token.utf8.count + 110)
    body.append(contentsOf: rendering.body[..<cut])
    body.append(contentsOf: "\"pushId\":".utf8)
    body.appendJSON(id)
    body.append(contentsOf: "},\"token\":".utf8)
    body.appendJSON(token)
    var rest = rendering.body[cut...]
    while let place = rest.firstIndex(where: { $0 <= Mark.id.rawValue }) {
      body.append(contentsOf: rest[..<place])
      let mark = rest[place]
      rest = rest[(place + 1)...]
      guard mark != Mark.id.rawValue else {
        body.appendJSON(id)
        continue
      }
      let limit = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
      rest = rest[limit.endIndex...]
      let end =
        limit.isEmpty
        ? expiresAt.seconds : min(expiresAt.seconds, limit.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) })
      let remaining = timeToLive - (expiresAt.seconds - end)
      body.appendJSON(mark == Mark.expiry.rawValue ? end : min(max(remaining, 0), FCMPayload.maximumTimeToLive))
    }
    body.append(contentsOf: rest)
    return body
  }
}

/// Writes a rendering: members of the `message`, then `data` with the cut (see `FCMBody`), then the members that depend
/// on the time to live.
struct FCMMessageWriter {
  private var body: [UInt8] = []
  private var isInsideObject = false
  private let isDryRun: Bool

  /// FCM only validates a dry run and does not deliver it.
  init(isDryRun: Bool = false) {
    self.isDryRun = isDryRun
    body.reserveCapacity(512)
    body.append(contentsOf: (isDryRun ? "{\"validate_only\":true,\"message\":{" : "{\"message\":{").utf8)
  }

  /// Begins a member of the current object; its value is appended next.
  mutating func begin(_ key: String) {
    if isInsideObject { body.append(UInt8(ascii: ",")) }
    isInsideObject = true
    body.appendJSON(key)
    body.append(UInt8(ascii: ":"))
  }

  /// Appends a string member, or nothing without a value.
  mutating func append(_ key: String, _ value: String?) {
    guard let value else { return }
    begin(key)
    body.appendJSON(value)
  }

  /// Appends a member whose value is JSON already.
  mutating func append(_ key: String, raw value: some Collection<UInt8>) {
    begin(key)
    body.append(contentsOf: value)
  }

  /// Appends members whose values are JSON already.
  mutating func append(_ members: [NativeFCMMessage.Member]) {
    for member in members { append(member.key, raw: member.value) }
  }

  mutating func append(_ key: String, number: Int64) {
    begin(key)
    body.appendJSON(number)
  }

  /// Appends a string member with a mark for a time of each push, limited to `end`, followed by `unit`.
  mutating func append(_ key: String, mark: FCMBody.Mark, until end: UnixTime? = nil, unit: String = "") {
    begin(key)
    body.append(UInt8(ascii: "\""))
    body.append(mark.rawValue)
    if let end { body.appendJSON(max(end.seconds, 0)) }
    body.append(contentsOf: unit.utf8)
    body.append(UInt8(ascii: "\""))
  }

  /// Appends an object; `content` appends its members.
  mutating func append<E: Error>(_ key: String, object content: (inout FCMMessageWriter) throws(E) -> Void) throws(E) {
    begin(key)
    try appendObject(content)
  }

  /// Ends the message with its data and the members that `content` appends, the only place for marks.
  consuming func finish<E: Error>(
    data: [(key: String, value: ArraySlice<UInt8>)], isUniform: Bool = true,
    then content: (inout FCMMessageWriter) throws(E) -> Void
  ) throws(E) -> RenderedPush {
    begin("data")
    body.append(UInt8(ascii: "{"))
    for (key, value) in data {
      body.appendJSON(key)
      body.append(UInt8(ascii: ":"))
      body.append(contentsOf: value)
      body.append(UInt8(ascii: ","))
    }
    let cut = body.endIndex
    try content(&self)
    body.append(contentsOf: "}}".utf8)
    return RenderedPush(headers: [], body: body, handleOffset: cut, isUniform: isUniform, isDryRun: isDryRun)
  }

  private mutating func appendObject<E: Error>(_ content: (inout FCMMessageWriter) throws(E) -> Void) throws(E) {
    body.append(UInt8(ascii: "{"))
    isInsideObject = false
    try content(&self)
    body.append(UInt8(ascii: "}"))
    isInsideObject = true
  }
}
