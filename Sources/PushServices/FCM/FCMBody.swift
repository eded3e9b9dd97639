import FanfareCore

/// The body of one `messages:send` request.
///
/// A rendering is cut where what differs from device to device goes. The cut lies inside `data`, which the push's id completes:
/// FCM has no other place for something by which an app recognises a push that comes twice. Then goes the device's token. What
/// stands behind the cut goes as it is, but for marks, bytes that JSON cannot contain, where it says how long the push lives. FCM
/// counts a time to live from the arrival of each request, so it is what remains now, not what remained when the send was
/// rendered; and of a send that names none only the push says when it ends. Thus one payload is one rendering, whenever it was
/// accepted: see `ProvenPayloads`.
enum FCMBody {
  /// The longest time to live that FCM takes, in seconds: four weeks.
  static let maximumTimeToLive: Int64 = 2_419_200
  /// The member of `data` that holds the push's id.
  static let idKey = "pushId"
  /// What the id adds to the bytes that FCM counts: its key and a UUID.
  static let idSize = idKey.utf8.count + 36

  /// A byte that stands for a number. The marks are the least bytes of all, and the only ones so small.
  enum Mark: UInt8 {
    /// The moment when the push's life ends, in seconds since 1970.
    case expiry = 1
    /// The seconds that the push still has, within FCM's limits.
    case timeToLive = 2
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
    while let mark = rest.firstIndex(where: { $0 <= Mark.timeToLive.rawValue }) {
      body.append(contentsOf: rest[..<mark])
      body.appendJSON(
        rest[mark] == Mark.expiry.rawValue ? expiresAt.seconds : min(max(timeToLive, 0), maximumTimeToLive))
      rest = rest[(mark + 1)...]
    }
    body.append(contentsOf: rest)
    return body
  }
}
