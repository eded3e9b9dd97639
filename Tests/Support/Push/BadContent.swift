package import FanfareCore

/// A content that a push service refuses for every device.
package struct BadContent: Sendable, CustomStringConvertible {
  /// Members of a send as JSON.
  package let members: String
  /// The service.
  package let platform: Platform
  /// The member that an error names.
  package let field: String
  /// The reason of the outcome of a push that a backend wrote to Kafka itself.
  package let reason: String

  private init(_ members: String, _ platform: Platform, _ field: String, _ reason: String) {
    (self.members, self.platform, self.field, self.reason) = (members, platform, field, reason)
  }

  package var description: String { String(members.prefix(100)) }

  /// The content and the collapse key, read as in a record.
  package func read() throws -> SendRequest {
    var fields = SendFields()
    var reader = try JSONReader(Array("{\(members)}".utf8)[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      if try !fields.read(key, from: &reader) { throw reader.error("is unknown") }
    }
    fields.audience = .user("bob")
    return try fields.request(id: .random(), acceptedAt: UnixTime(milliseconds: 1_795_248_000_000))
  }

  package static let cases = headers + payloads + portable

  private static func x(_ count: Int) -> String { String(repeating: "x", count: count) }

  private static let headers: [BadContent] =
    [
      ("apns-push-type", "voip"), ("apns-push-type", "liveactivity"), ("apns-priority", "7"), ("apns-priority", "high"),
      ("apns-expiration", "1795248000000"), ("apns-expiration", "-1"), ("apns-expiration", "1960-01-01T00:00:00Z"),
      ("apns-expiration", "soon"),
    ].map {
      BadContent(
        #""native":{"apns":{"aps":{"alert":"a"}},"headers":{"\#($0)":"\#($1)"}}"#, .apns, "native.headers.\($0)",
        "BadHeader")
    }
    + [
      BadContent(
        #""native":{"apns":{"aps":{}},"headers":{"apns-collapse-id":"\#(x(65))"}}"#, .apns,
        "native.headers.apns-collapse-id", "BadCollapseId"),
      BadContent(#""message":{"body":"b"},"collapseKey":"a\u0001""#, .apns, "collapseKey", "BadCollapseId"),
      BadContent(
        #""message":{"body":"b"},"native":{"headers":{"apns-priority":"6"}}"#, .apns, "native.headers.apns-priority",
        "BadHeader"),
    ]
    + [
      ("x-wns-ttl", "3.5s"), ("x-wns-ttl", "-1"), ("x-wns-type", "wns/loud"), ("x-wns-priority", "0"),
      ("x-wns-tag", "a-b"), ("x-wns-group", "seventeenletters1"), ("x-wns-cache-policy", "maybe"),
      ("content-type", "application/octet-stream"),
    ].map {
      BadContent(
        #""native":{"wns":"<toast/>","headers":{"\#($0)":"\#($1)"}}"#, .wns, "native.headers.\($0)", "BadHeader")
    }

  private static let payloads =
    [
      BadContent(#""native":{"apns":{"a":"\#(x(4096))"}}"#, .apns, "native.apns", "PayloadTooLarge"),
      BadContent(#""native":{"wns":"\#(x(5001))"}"#, .wns, "native.wns", "PayloadTooLarge"),
      BadContent(#""native":{"fcm":{"data":{"k":"\#(x(4096))"}}}"#, .fcm, "native.fcm", "PayloadTooLarge"),
      BadContent(#""native":{"fcm":{"data":{"k":7,"l":"\#(x(4096))"}}}"#, .fcm, "native.fcm", "PayloadTooLarge"),
      BadContent(#""native":{"fcm":{"fcm_options":{"k":"\#(x(65_536))"}}}"#, .fcm, "native.fcm", "PayloadTooLarge"),
      BadContent(#""native":{"fcm":{}}"#, .fcm, "native.fcm", "PayloadEmpty"),
      BadContent(#""native":{"fcm":{"data":null,"android":{}}}"#, .fcm, "native.fcm", "PayloadEmpty"),
      BadContent(#""native":{"fcm":{"priority":"high"}}"#, .fcm, "native.fcm", "PayloadEmpty"),
      BadContent(#""native":{"fcm":{"message":{}}}"#, .fcm, "native.fcm", "PayloadEmpty"),
      BadContent(
        #""native":{"fcm":{"message":{"data":{"k":"v"}},"validate_only":true}}"#, .fcm, "native.fcm", "BadPayload"),
      BadContent(#""native":{"fcm":{"message":"m"}}"#, .fcm, "native.fcm.message", "BadPayload"),
      BadContent(#""native":{"fcm":{"android":{"ttl":"60"}}}"#, .fcm, "native.fcm.android.ttl", "BadPayload"),
      BadContent(#""native":{"fcm":{"android_v2":{"ttl":-1}}}"#, .fcm, "native.fcm.android_v2.ttl", "BadPayload"),
      BadContent(
        #""native":{"fcm":{"webpush":{"headers":{"TTL":"1.5"}}}}"#, .fcm, "native.fcm.webpush.headers.TTL", "BadPayload"
      ),
      BadContent(
        #""native":{"fcm":{"message":{"apns":{"headers":{"apns-expiration":"1795248000000"}}}}}"#, .fcm,
        "native.fcm.message.apns.headers.apns-expiration", "BadPayload"),
      BadContent(
        #""native":{"fcm":{"apns":{"headers":{"apns-priority":"high"}}}}"#, .fcm,
        "native.fcm.apns.headers.apns-priority", "BadPayload"),
      BadContent(
        #""native":{"fcm":{"apns":{"headers":{"apns-collapse-id":"\#(x(65))"}}}}"#, .fcm,
        "native.fcm.apns.headers.apns-collapse-id", "BadCollapseId"),
      BadContent(
        #""native":{"fcm":{"collapse_key":"\#(x(65))","data":{"k":"v"}}}"#, .fcm, "native.fcm.collapse_key",
        "BadCollapseId"),
      BadContent(
        #""native":{"fcm":{"notification":{"badge":"x"}}}"#, .fcm, "native.fcm.notification.badge", "BadPayload"),
      BadContent(
        #""native":{"fcm":{"priority":"urgent","data":{"k":"v"}}}"#, .fcm, "native.fcm.priority", "BadPayload"),
    ]
    + ["token", "fid", "topic", "condition"].map {
      BadContent(#""native":{"fcm":{"\#($0)":"t","data":{"k":"v"}}}"#, .fcm, "native.fcm.\($0)", "TargetInPayload")
    }
    + ["to", "token", "topic", "condition"].map {
      BadContent(
        #""native":{"fcm":{"\#($0)":"t","priority":"high","data":{"k":1}}}"#, .fcm, "native.fcm.\($0)",
        "TargetInPayload")
    }
    + reservedKeys.flatMap { key in
      [#"{"data":{"\#(key)":"v"}}"#, #"{"data":{"\#(key)":1}}"#].map {
        BadContent(#""native":{"fcm":\#($0)}"#, .fcm, "native.fcm.data.\(key)", "ReservedDataKey")
      }
        + ["android", "android_v2", "webpush"].map {
          BadContent(
            #""native":{"fcm":{"\#($0)":{"data":{"\#(key)":"v"}}}}"#, .fcm, "native.fcm.\($0).data.\(key)",
            "ReservedDataKey")
        }
    }

  private static let reservedKeys = ["from", "message_type", "google.x", "gcm.notification.title", "pushId"]

  private static let portable =
    reservedKeys.map {
      BadContent(#""message":{"body":"b","data":{"\#($0)":"v"}}"#, .fcm, "message.data.\($0)", "ReservedDataKey")
    } + [
      BadContent(#""message":{"data":{"aps":"v"}}"#, .apns, "message.data.aps", "ReservedDataKey"),
      // FCM counts the keys `title` and `body` too, and the push's id has 42 of 4,096 bytes.
      BadContent(
        #""message":{"title":"\#(x(25))","body":"\#(x(4025))"},"platforms":["fcm"]"#, .fcm, "message",
        "PayloadTooLarge"),
      // A backslash has two bytes in JSON.
      BadContent(
        #""message":{"body":"\#(String(repeating: #"\\"#, count: 2100))"},"platforms":["apns"]"#, .apns, "message",
        "PayloadTooLarge"),
      BadContent(
        #""message":{"body":"\#(String(repeating: "<", count: 1250))"},"platforms":["wns"]"#, .wns, "message",
        "PayloadTooLarge"),
      BadContent(#""message":{"sound":"default"},"platforms":["wns"]"#, .wns, "message", "PayloadEmpty"),
    ]
}
