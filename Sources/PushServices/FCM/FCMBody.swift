import FanfareCore

/// The body of one `messages:send` request.
///
/// A rendering is cut where what differs from device to device goes. The cut lies inside `data`, which the push's id
/// completes: FCM has no other place for something by which an app recognises a push that comes twice. Then goes the
/// device's token. What stands behind the cut goes as it is, but for marks, bytes that JSON cannot contain, where it
/// says how long the push lives, or its id again. FCM counts a time to live from the arrival of each request, so it is
/// what remains now, not what remained when the send was rendered; and of a send that names none only the push says
/// when it ends. Thus one payload is mostly one rendering, whenever it was accepted: see `ProvenPayloads`.
enum FCMBody {
  /// The longest time to live that FCM takes, in seconds: four weeks.
  static let maximumTimeToLive: Int64 = 2_419_200
  /// The member of `data` that holds the push's id.
  static let idKey = "pushId"
  /// What the id adds to the bytes that FCM counts: its key and a UUID.
  static let idSize = idKey.utf8.count + 36

  /// A byte that stands for what each push has of its own. The marks are the least bytes of all, and the only ones so
  /// small. The digits behind a mark for a time, where there are any, are the moment, in seconds since 1970, when the
  /// message ends in any case.
  enum Mark: UInt8 {
    /// The moment when the push's life ends, in seconds since 1970.
    case expiry = 1
    /// The seconds that the push still has, within FCM's limits.
    case timeToLive = 2
    /// The push's id, as JSON.
    case id = 3
  }

  /// Completes a rendering for one device. The time to live is in seconds, rounded down.
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
      body.appendJSON(mark == Mark.expiry.rawValue ? end : min(max(remaining, 0), maximumTimeToLive))
    }
    body.append(contentsOf: rest)
    return body
  }
}
