import FanfareCore
import Foundation
import Support

/// Requests of all kinds to the routes for sends: usual, odd and hostile ones. The same seed makes the same requests.
struct RequestCorpus {
  private var generator: SeededGenerator
  private var mutator: Mutator

  private static let users = [
    "alice", "alice", "alice", "opal", "devon", "sandy", "tight", "tight", "only send.user", "only send.tag",
    "only send.broadcast send.user", "only send.device", "zo\u{eb}",
  ]

  private static let sends = [
    #"{"to":{"user":"bob"},"message":{"body":"b"}}"#,
    #"{"to":{"user":"bob"},"message":{"title":"t","body":"b","data":{"k":"v"},"badge":3,"sound":"s"},"platforms":["apns","fcm"],"ttl":3600,"priority":"normal","collapseKey":"c"}"#,
    #"{"to":{"tag":"news"},"message":{"body":"b"}}"#, #"{"to":{"tags":["a","b"]},"message":{"body":"b"}}"#,
    #"{"to":{"expression":"(a && !b) || c"},"message":{"body":"b"},"maxPerSecond":100}"#,
    #"{"to":{"everyone":true},"message":{"body":"b"}}"#,
    #"{"to":{"device":{"platform":"fcm","handle":"h"}},"native":{"fcm":{"data":{"a":"b"}}}}"#,
    #"{"to":{"user":"bob"},"native":{"apns":{"aps":{"alert":"x"}},"wns":"<toast>x</toast>"}}"#,
    #"{"to":{"user":"bob"},"message":{"body":"\ud83d\ude00 é"}}"#,
    #"{"to":{"user":"bob"},"message":{"body":"b"},"sendAt":"2000-01-01T00:00:00Z"}"#,
    #"{"to":{"user":"bob"},"message":{"body":"b"},"sendAt":"2099-01-01T00:00:00Z"}"#,
    #"{"to":{"user":"bob"},"message":{"body":"b"},"unknown":1}"#, #"{"to":{"user":"bob"},"message":{"body":1}}"#,
    #"{"to":{"user":"bob"}}"#, #"{"message":{"body":"b"}}"#, #"{"to":{"user":"bob"},"message":{"body":"\ud800"}}"#,
    #"{"to":{"device":{"platform":"wns","handle":"h"}},"native":{"fcm":{"data":{}}}}"#, "", "null", "[]", "\u{FEFF}{}",
    "\u{FEFF}" + #"{"to":{"user":"bob"},"message":{"body":"b"}}"#,
    #"{"to":{"user":"bob"},"message":{"body":"b"}} "#, #" {"to":{"user":"bob"},"message":{"body":"b"}}x"#,
    #"{"to":{"user":"bob"},"message":{"body":"\#(String(repeating: "x", count: 3000))"}}"#,
    #"{"to":{"user":"bob"},"message":{"body":"\#(String(repeating: "x", count: 70_000))"}}"#,
  ]

  private static let messages = [
    #""hello""#, #""<&> \u0001 \r\n""#, #""""#, "1", #""\ud83d\ude00""#, #""\ud83d""#, #""a" "b""#, "", " \"x\" ",
  ]

  private static let queries = [
    "?pns=apns&to_tag=bob", "?pns=fcm&to_tag=bob", "?pns=gcm&to_tag=zo%C3%AB", "?pns=wns&to_tag=a+b%40c", "?to_tag=bob",
    "?pns=apns", "?pns=x&to_tag=bob", "?pns=apns&to_tag=bob&pns=fcm", "?pns=apns&to_tag=%zz", "?pns=apns&to_tag=",
    "?pns=apns&to_tag=bob&other=1", "?pns=apns&to_tag=bob#x", "?", "", "?pns=apns&to_tag=a:b", "??pns=apns&to_tag=b",
  ]

  private static let types: [String?] = [
    "application/json", "application/json", "application/json;charset=utf-8", "application/json; charset=utf-8",
    "Application/JSON ; charset=\"UTF-8\"", "application/json; charset=latin1", "text/json", "text/plain", nil,
    "application/json ",
  ]

  private static let oddities = [
    "X-Request-Id: r-1", "X-Request-Id:  padded\t", "X-Request-Id: not plain", "x-request-id: a\r\nX-Request-Id: b",
    "X-Request-Id: \(String(repeating: "r", count: 129))",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "traceparent: 00-xyz", "Traceparent: ",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=1", "TraceState: a=1, b=2 ",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntraceparent: x",
    "Origin: https://evil.example", "Origin: http://x", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: none",
    "Content-Encoding: gzip", "content-encoding: identity", "Idempotency-Key: k-1", "Idempotency-Key: k-2",
    "IDEMPOTENCY-KEY: \u{1}", "X-Forwarded-For: 203.0.113.9", "Expect: 100-continue", "Expect: else",
    "Content-Type: application/json", "Authorization: Basic eDp4", "Cookie: a=b; c=d", "Accept: text/html",
    "X-Odd: \u{e9}\u{e8}", "Connection: keep-alive", "Connection: close", "Connection: Upgrade\r\nUpgrade: h2c",
    "Host: y", "Transfer-Encoding: gzip", "Bad Name: x", ": x", "X-Long: \(String(repeating: "y", count: 5000))",
    "Trailer: X", "Range: bytes=0-", "If-Match: *", "TE: trailers", "Content-Length: 3", " folded: x", "Via: 1.1 p",
  ]

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    mutator = Mutator(seed: seed)
  }

  /// Returns a plain request of a user, and a request to send next on the same connection, usually of the same user.
  mutating func next() -> (first: String, request: [UInt8]) {
    let user = pick(Self.users)
    let credentials = Harness.basic(user, user)
    let hub = chance(6) ? "/hubs/shop" : chance(6) ? "/hubs/default" : ""
    let isMessage = chance(3)
    let body = Array((isMessage ? #""x""# : Self.sends[0]).utf8)
    let path = isMessage ? "/api/notifications?pns=apns&to_tag=bob" : "/api/sends"
    let first =
      "POST \(hub)\(path) HTTP/1.1\r\nHost: x\r\nAuthorization: \(credentials)\r\nContent-Type: application/json\r\n"
      + "Content-Length: \(body.count)\r\n\r\n" + String(decoding: body, as: UTF8.self)
    return (first, request(of: user, credentials, hub: hub, isMessage: isMessage))
  }

  private mutating func request(
    of user: String, _ credentials: String, hub: String, isMessage: Bool
  ) -> [UInt8] {
    var content = Array((isMessage ? pick(Self.messages) : chance(2) ? Self.sends[0] : pick(Self.sends)).utf8)
    if chance(4) { content = mutator.mutate(content) }
    var path = isMessage ? "/api/notifications" + (chance(2) ? Self.queries[0] : pick(Self.queries)) : "/api/sends"
    if chance(30) { path += pick(["/", "?x=1", "%20", "/x", "?", "#y", "/batch", "/secure?to_tag=bob"]) }
    var root = chance(30) ? pick(["/hubs/none", "/hubs/SHOP", "/hubs/sh%6Fp", "//", "/hubs//", "http://x"]) : hub
    if chance(40) { root = hub + "/." }
    let method = chance(25) ? pick(["PUT", "GET", "HEAD", "OPTIONS", "post", "DELETE", "QUERY"]) : "POST"
    // Most hostile requests have one thing that is odd.
    let isPlain = chance(2)
    var fields = [chance(60) ? "X-Host: x" : "Host: x"]
    switch isPlain ? 7 : Int.random(in: 0..<24, using: &generator) {
    case 0: break
    case 1: fields.append("Authorization: \(Harness.basic(user, "wrong"))")
    case 2: fields.append("Authorization: \(Harness.basic("alice", "alice"))")
    case 3: fields.append("authorization:   \(credentials)  ")
    case 4: fields.append("Authorization: \(credentials.replacing("Basic", with: "bAsIc"))")
    case 5: fields.append("Authorization: Bearer \(credentials.dropFirst(6))")
    case 6: fields.append("Authorization: \(credentials)\r\nAuthorization: \(credentials)")
    default: fields.append("Authorization: \(credentials)")
    }
    if let type = isPlain ? "application/json" : pick(Self.types) { fields.append("Content-Type: \(type)") }
    for _ in 0..<(isPlain || chance(4) ? 0 : Int.random(in: 1...3, using: &generator)) {
      fields.append(pick(Self.oddities))
    }
    if chance(12) {
      let length = String(content.count, radix: 16)
      fields.append("Transfer-Encoding: chunked")
      content = Array("\(length)\r\n".utf8) + content + Array("\r\n0\r\n\r\n".utf8)
      if content.starts(with: "0\r\n".utf8) { content = Array("0\r\n\r\n".utf8) }
    } else {
      fields.append("Content-Length: \(content.count)")
    }
    if chance(3) { fields.shuffle(using: &generator) }
    let version = chance(25) ? pick(["1.0", "1.2", "2.0"]) : "1.1"
    let head = "\(method) \(root)\(path) HTTP/\(version)\r\n\(fields.joined(separator: "\r\n"))\r\n\r\n"
    return Array(head.utf8) + content
  }

  private mutating func pick<Value>(_ values: [Value]) -> Value {
    values[Int.random(in: 0..<values.count, using: &generator)]
  }

  /// True once in `count` times.
  private mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }
}
