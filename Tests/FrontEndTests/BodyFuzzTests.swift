import FanfareCore
import Support
import Testing

@testable import FrontEnd

/// Corrupted bodies over a real socket.
/// The answer is a success or a client error, never a server error.
@Suite(.timeLimit(.minutes(3))) struct BodyFuzzTests {
  private static let mark = "SECRETMARK"
  private static let rounds = 250

  private struct Case: Sendable {
    let method: Harness.Method
    let path: String
    let type: String
    let body: String
  }

  private static let send =
    #"{"to":{"user":"bob"},"message":{"title":"\#(mark)","body":"\#(mark)","data":{"k":"\#(mark)"},"badge":3,"sound":"\#(mark)"},"platforms":["apns","fcm"],"ttl":3600,"priority":"normal","collapseKey":"\#(mark)"}"#
  private static let native =
    #"{"to":{"device":{"platform":"fcm","handle":"\#(mark)"}},"native":{"apns":{"aps":{"alert":"\#(mark)"}},"fcm":{"data":{"a":"\#(mark)"}},"wns":"<toast>\#(mark)</toast>"}}"#

  private static let broadcast =
    #"{"to":{"expression":"(a && !b) || \#(mark)"},"message":{"body":"\#(mark)"},"maxPerSecond":100}"#

  private static let cases: [Case] = [
    Case(method: .post, path: "/api/sends", type: "application/json", body: broadcast),
    Case(method: .post, path: "/api/sends", type: "application/json", body: send),
    Case(method: .post, path: "/api/sends", type: "application/json", body: native),
    Case(
      method: .post, path: "/api/sends/batch", type: "application/x-ndjson",
      body: [send, native, send].joined(separator: "\n")),
    Case(
      method: .post, path: "/api/register", type: "application/json",
      body: #"{"platform":"android","instId":"\#(mark)","deviceToken":"\#(mark)"}"#),
    Case(
      method: .post, path: "/api/register", type: "application/json",
      body: #"{"platform":"windows","instId":"i","channelUri":"https://db5.notify.windows.com/?token=\#(mark)"}"#),
    Case(
      method: .put, path: "/api/register/ID", type: "application/json",
      body: #"{"Platform":"fcm","Handle":"\#(mark)","Tags":["news","\#(mark)"],"other":{"a":[1,null]}}"#),
    Case(
      method: .put, path: "/api/installations/i", type: "application/json",
      body: #"{"platform":"fcm","handle":"\#(mark)","tags":["news","\#(mark)"]}"#),
    Case(
      method: .patch, path: "/api/installations/i", type: "application/json-patch+json",
      body: #"[{"op":"add","path":"/tags/-","value":"\#(mark)"},{"op":"replace","path":"/handle","value":"\#(mark)"}]"#),
    Case(
      method: .put, path: "/api/registrations/ID", type: "application/json",
      body: #"{"platform":"fcm","handle":"\#(mark)","tags":["news","\#(mark)"]}"#),
    Case(
      method: .post, path: "/api/notifications?pns=apns&to_tag=bob", type: "application/json",
      body: #""\#(mark) \u00e9""#),
    Case(method: .post, path: "/api/notifications/secure?to_tag=bob", type: "application/json", body: #""\#(mark)""#),
  ]

  @Test(arguments: UInt64(1)...2) func corruptedBodyIsNeverAServerError(seed: UInt64) async throws {
    let log = LogRecorder()
    try await Harness.run({ $0.logger = log.logger }) { app in
      let id = try await app.issue(handle: "h")
      var mutator = Mutator(seed: seed)
      for spoiled in Self.cases {
        let path = spoiled.path.replacing("ID", with: id)
        for _ in 0..<Self.rounds {
          let body = mutator.mutate(Array(spoiled.body.utf8))
          let reply = try await app.request(spoiled.method, path, bytes: body, type: spoiled.type)
          if reply.status < 300 {
            // A batch reports the problems of its lines; a registration contains the caller's own values.
            guard spoiled.path.hasSuffix("batch") else { continue }
            #expect(!reply.text.contains(Self.mark) && !reply.text.contains("internalError"), "\(reply.text)")
          } else {
            #expect((400..<500).contains(reply.status), "\(reply.status)")
            #expect(reply["Content-Type"] == "application/problem+json")
            #expect(reply.code != nil)
            #expect(!reply.text.contains(Self.mark), "\(reply.text)")
          }
        }
      }
    }
    #expect(!log.text.contains(Self.mark))
  }
}
