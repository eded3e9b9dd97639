import FanfareCore

/// Writes a rendering: the members of the `message`, then the cut for the token, then the `android` object or its rest.
struct FCMMessageWriter {
  private var body: [UInt8] = []
  private var isInsideObject = false

  /// Begins a message; a dry run is judged by FCM and delivered to nobody.
  init(isDryRun: Bool = false) {
    body.reserveCapacity(384)
    body.append(contentsOf: (isDryRun ? "{\"validate_only\":true,\"message\":{" : "{\"message\":{").utf8)
  }

  /// Begins a member of the message, or of the object begun last; its value is appended next.
  mutating func begin(_ key: String) {
    if isInsideObject { body.append(UInt8(ascii: ",")) }
    isInsideObject = true
    body.appendJSON(key)
    body.append(UInt8(ascii: ":"))
  }

  /// Appends a string member; nothing where there is no value.
  mutating func append(_ key: String, _ value: String?) {
    guard let value else { return }
    begin(key)
    body.appendJSON(value)
  }

  /// Appends a member whose value is JSON already; nothing where there is no value.
  mutating func append(_ key: String, raw value: some Collection<UInt8>) {
    begin(key)
    body.append(contentsOf: value)
  }

  /// Appends a number.
  mutating func append(_ key: String, number: Int64) {
    begin(key)
    body.appendJSON(number)
  }

  /// Appends an object, whose members `content` appends.
  mutating func append<E: Error>(_ key: String, object content: (inout FCMMessageWriter) throws(E) -> Void) throws(E) {
    begin(key)
    try appendObject(content)
  }

  /// Ends the message with an `android` object that still wants its `ttl`.
  consuming func finish<E: Error>(android content: (inout FCMMessageWriter) throws(E) -> Void) throws(E) -> RenderedPush {
    if isInsideObject { body.append(UInt8(ascii: ",")) }
    let cut = body.endIndex
    isInsideObject = true
    try content(&self)
    body.append(contentsOf: "}}}".utf8)
    return RenderedPush(headers: [], body: body, handleOffset: cut)
  }

  /// Ends a message that has all but its token.
  consuming func finish() -> RenderedPush {
    if isInsideObject { body.append(UInt8(ascii: ",")) }
    let cut = body.endIndex
    body.append(contentsOf: "}}".utf8)
    return RenderedPush(headers: [], body: body, handleOffset: cut)
  }

  private mutating func appendObject<E: Error>(_ content: (inout FCMMessageWriter) throws(E) -> Void) throws(E) {
    body.append(UInt8(ascii: "{"))
    isInsideObject = false
    try content(&self)
    body.append(UInt8(ascii: "}"))
    isInsideObject = true
  }
}
