import FanfareCore

/// The body of one `messages:send` request.
///
/// A rendering is cut where what differs from device to device goes. The cut lies inside `data`, which the push's id completes: FCM has no
/// other place for something by which an app recognises a push that comes twice. Then goes the device's token. Behind the cut stands
/// either the end of the message, or (recognised by the comma) the rest of an `android` object that still wants its `ttl`: FCM counts the
/// time to live from the arrival of each request, so it is what remains now, not what remained when the send was rendered.
enum FCMBody {
  /// The longest time to live that FCM takes, in seconds: four weeks.
  static let maximumTimeToLive: Int64 = 2_419_200
  /// The member of `data` that holds the push's id.
  static let idKey = "pushId"
  /// What the id adds to the bytes that FCM counts: its key and a UUID.
  static let idSize = idKey.utf8.count + 36

  /// Completes a rendering for one device. The time to live is in seconds, rounded down.
  static func complete(_ rendering: RenderedPush, id: PushID, token: String, timeToLive: Int64) -> [UInt8] {
    let cut = rendering.handleOffset ?? rendering.body.endIndex
    var body: [UInt8] = []
    body.reserveCapacity(rendering.body.count + token.utf8.count + 100)
    body.append(contentsOf: rendering.body[..<cut])
    body.append(contentsOf: "\"pushId\":".utf8)
    body.appendJSON(id)
    body.append(contentsOf: "},\"token\":".utf8)
    body.appendJSON(token)
    if cut < rendering.body.endIndex, rendering.body[cut] == UInt8(ascii: ",") {
      body.append(contentsOf: ",\"android\":{\"ttl\":\"".utf8)
      body.appendJSON(min(max(timeToLive, 0), maximumTimeToLive))
      body.append(contentsOf: "s\"".utf8)
    }
    body.append(contentsOf: rendering.body[cut...])
    return body
  }
}
