import FanfareCore
import Foundation
import Operations
import RDKafka
import Support
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct SecrecyTests {
  private static let password = "PASSWORD-MARK-1"
  private static let handle = "MARKHANDLE-2"
  private static let message = "MESSAGE-MARK-3"
  private static let user = "USER-MARK-4"
  private static let token = "TOKEN-MARK-5"

  /// Valid and invalid requests with marked passwords, tokens and payloads.
  @Test func secretsAppearInNoAnswerAndNoLog() async throws {
    let log = LogRecorder()
    let sink = RecordingSink { record in
      String(decoding: record.key ?? [], as: UTF8.self) == "username:carol"
        ? RDKafkaError(code: .fatal, message: "no") : nil
    }
    let authorization = ("Authorization", Harness.basic(Self.user, Self.password))
    let encoded = String(authorization.1.dropFirst(6))
    try await Harness.run({
      $0.hubs = [FrontEndHub(name: .default, authenticators: [OnePassword(password: Self.password)])]
      $0.sink = sink
      $0.logger = log.logger
      $0.security = SecurityLog(logger: log.logger)
      $0.configuration.bodyTimeout = .milliseconds(100)
    }) { app in
      let (handle, message) = (Self.handle, Self.message)
      var answers: [String] = []
      for (method, path, body) in [
        (.post, "/api/register?handle=\(handle)", nil), (.post, "/api/register?handle=\(handle)&handle=\(handle)", nil),
        (.post, "/api/register?handle=\(handle)%0a", nil),
        (.put, "/api/register/1", #"{"Platform":"fcm","Handle":"\#(handle)"}"#),
        (.put, "/api/register/1", #"{"Platform":"apns","Handle":"\#(handle)"}"#),
        (.put, "/api/register/1", #"{"Platform":"\#(handle)","Handle":"aa","Tags":["\#(message) "]}"#),
        (.put, "/api/register/1", #"{"Platform":"fcm","Handle":"\#(handle)"#), (.put, "/api/register/1", handle),
        (.post, "/api/register", #"{"platform":"ios","instId":"i","deviceToken":"\#(handle)"}"#),
        (.post, "/api/register", #"{"platform":"windows","instId":"i","channelUri":"https://x/\#(handle)"}"#),
        (.post, "/api/notifications?pns=apns&to_tag=bob", #""\#(message)""#),
        (.post, "/api/notifications?pns=apns&to_tag=carol", #""\#(message)""#),
        (.post, "/api/notifications?pns=\(message)&to_tag=bob", #""\#(message)""#),
        (.post, "/api/notifications?pns=apns&to_tag=bob", message),
        (.post, "/api/notifications?pns=apns&to_tag=bob", #""\#(message)"#),
        (.post, "/api/notifications/secure?to_tag=bob", #""\#(message)""#),
        (.post, "/api/notifications/secure?to_tag=carol", #""\#(message)""#),
        (.post, "/api/sends", #"{"to":{"user":"bob"},"message":{"body":"\#(message)"}}"#),
        (.post, "/api/sends", #"{"to":{"user":"carol"},"message":{"body":"\#(message)"}}"#),
        (.post, "/api/sends", #"{"to":{"user":"bob"},"message":{"body":"\#(message)","badge":"\#(message)"}}"#),
        (.post, "/api/sends", #"{"to":{"user":"bob"},"message":{"data":{"k":["\#(message)"]}}}"#),
        (.post, "/api/sends", #"{"to":{"user":"bob"},"native":{"apns":"\#(message)"}}"#),
        (.post, "/api/sends", #"{"to":{"user":"bob"},"native":{"apns":{"a":\#(message)}}}"#),
        (.post, "/api/sends", #"{"to":{"device":{"platform":"apns","handle":"\#(handle)"}},"message":{"body":"x"}}"#),
        (.post, "/api/sends", #"{"to":{"user":"bob"},"message":{"body":"x"},"priority":"\#(message)"}"#),
        (
          .post, "/api/sends",
          #"{"to":{"user":"bob"},"message":{"body":"x"},"collapseKey":"\#(String(repeating: message, count: 9))"}"#
        ),
        (.post, "/api/sends/batch", #"{"to":{"user":"carol"},"message":{"body":"\#(message)"}}"#),
        (.get, "/api/sends/\(message)", nil), (.get, "/api/notifications/\(message)", nil), (.get, "/\(message)", nil),
        (.delete, "/api/sends/\(message)", nil), (.get, "/api/sends?\(handle)", nil),
        (.get, "/api/registrations?\(handle)", nil), (.get, "/api/registrations?a%0aFORGED=1", nil),
        (.get, "/api/registrations?\(String(repeating: "MARKTOKEN", count: 4))", nil),
      ] as [(Harness.Method, String, String?)] {
        let type = path.hasSuffix("batch") ? "application/x-ndjson" : "application/json"
        for header in [
          authorization, ("Authorization", Harness.basic(Self.user, Self.password + "x")),
          ("Authorization", Self.password), ("Authorization", "Bearer \(Self.token)"),
        ] {
          let reply = try await app.request(method, path, as: nil, body: body, type: type, headers: [header])
          answers.append("\(reply.headers)\n\(reply.text)")
        }
      }
      for raw in [
        "POST /api/sends HTTP/1.1\r\n\(authorization.0): \(authorization.1)\r\nContent-Length: 99\r\n\r\n\"\(message)",
        "POST /api/sends HTTP/1.1\r\n\(authorization.0): \(authorization.1)\r\n\(message) \(handle)\r\n\r\n",
        "\(message)\r\n\(authorization.1)\r\n\r\n",
      ] { answers.append(try await RawConnection.exchange(raw, port: app.port)) }
      #expect(answers.count == 35 * 4 + 3)
      // A caller may be told its own name.
      #expect(!log.text.contains(Self.user))
      for mark in [Self.password, encoded, handle, handle.lowercased(), message, Self.token, "FORGED", "MARKTOKEN"] {
        #expect(!answers.contains { $0.contains(mark) })
        #expect(!log.text.contains(mark))
      }
      #expect(log.text.contains("Request refused"), "the log is not empty")
      #expect(log.text.contains("login.failed"), "the security log is not empty")
    }
  }

  /// Accepts only alice with one password.
  private struct OnePassword: Authenticator {
    let password: String

    let challenge = BasicCredentials.challenge

    func authenticate(
      _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
    ) async throws -> Principal? {
      guard case .basic(let basic) = credentials, basic.user == SecrecyTests.user, basic.password == password
      else { return nil }
      return Principal(user: basic.user, scopes: Set(Scope.allCases))
    }
  }
}
