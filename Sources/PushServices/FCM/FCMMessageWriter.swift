import FanfareCore

/// Writes a rendering: members of the `message`, then `data` with the cut (see `FCMBody`), then the members that depend
/// on the time to live.
struct FCMMessageWriter {
  private var body: [UInt8] = []
  private var isInsideObject = false

  /// FCM only validates a dry run and does not deliver it.
  init(isDryRun: Bool = false) {
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
    return RenderedPush(headers: [], body: body, handleOffset: cut, isUniform: isUniform)
  }

  private mutating func appendObject<E: Error>(_ content: (inout FCMMessageWriter) throws(E) -> Void) throws(E) {
    body.append(UInt8(ascii: "{"))
    isInsideObject = false
    try content(&self)
    body.append(UInt8(ascii: "}"))
    isInsideObject = true
  }
}
