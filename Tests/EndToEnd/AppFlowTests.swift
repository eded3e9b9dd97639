import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// The flows of an app and its users, through every process of a deployment.
@Suite(.serialized) struct AppFlowTests {
  static let phone = String(repeating: "1a", count: 32)
  static let android = "android-1"
  static let channel = "https://cloud.notify.windows.com/?token=windows-1"

  @Test(.timeLimit(.minutes(3))) func messagesArriveWholeOnTheDevicesOfTheirUser() async throws {
    try await Deployment.with { deployment in
      let worker = try deployment.startWorker()
      let (api, apiOperations) = try await deployment.startObservedFrontEnd()
      let operations = try await deployment.ready(worker)

      // Flow A: get an id, then register with it.
      let issued = try await api.call("POST", "/api/register?handle=\(Self.phone)", user: "bob")
      #expect(issued.status == 200)
      let id = try #require(
        issued.text.dropFirst().dropLast().isEmpty ? nil : String(issued.text.dropFirst().dropLast()))
      let completed = try await api.call(
        "PUT", "/api/register/\(id)", user: "bob",
        body: #"{"Platform":"apns","Handle":"\#(Self.phone)","Tags":["news"]}"#)
      #expect(completed.status == 200)
      // Flow B: register by installation.
      for body in [
        #"{"platform":"android","instId":"i-1","deviceToken":"\#(Self.android)"}"#,
        #"{"platform":"windows","instId":"i-2","channelUri":"\#(Self.channel)"}"#,
      ] {
        #expect(try await api.call("POST", "/api/register", user: "bob", body: body).status == 200)
      }

      let hostile = [
        "plain", "\"quotes\" and \\ backslash", "<toast>&amp;</toast> & 'more'", "two\nlines\ttab", "👩‍👩‍👧 é 中文",
      ]
      for (number, text) in hostile.enumerated() {
        for platform in ["APNS", "gcm", "wns"] {
          let body = String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
          let answer = try await api.call(
            "POST", "/api/notifications?pns=\(platform)&to_tag=bob", user: "alice", body: body,
            type: "application/json;charset=utf-8")
          #expect(answer.status == 200)
          let send = try #require(try answer.json["id"] as? String)
          #expect(answer.headers["location"] == "/api/sends/\(send)")
          let report = try await deployment.settled(send, as: "alice", at: api)
          #expect(report["state"] as? String == "settled", "\(text) on \(platform), number \(number)")
        }
      }
      let expected = hostile.map { "From alice: \($0)" }
      let onPhone = try await deployment.arrivals("apns", Self.phone).compactMap { $0 as? [String: Any] }
      let alerts: [String?] = onPhone.map { ($0["aps"] as? [String: Any])?["alert"] as? String }
      let inApp: [String?] = onPhone.map { $0["inAppMessage"] as? String }
      #expect(alerts == expected)
      #expect(inApp == expected)
      let onAndroid = try await deployment.arrivals("fcm", Self.android).compactMap { $0 as? [String: Any] }
      let texts: [String?] = onAndroid.map { payload in
        let message = payload["message"] as? [String: Any]
        return (message?["data"] as? [String: Any])?["message"] as? String
      }
      #expect(texts == expected)
      let onWindows: [String] = try await deployment.arrivals("wns", "windows-1").compactMap { $0 as? String }
      let shown = try onWindows.map { toast in try ToastText(toast).text }
      #expect(shown == expected)

      let large = String(repeating: "x", count: 60 * 1024)
      let answer = try await api.call(
        "POST", "/api/notifications?pns=apns&to_tag=bob", user: "alice", body: "\"\(large)\"")
      #expect(answer.status == 400, "it is too large for APNs")
      #expect(try await deployment.arrivals("apns", Self.phone).count == hostile.count)

      try await phoneChangesHands(deployment, api, id: id)
      try await secretsStay(deployment, api)
      try await kcatTakesPart(deployment, api)
      try await metricsAreSound(
        deployment, apiOperations,
        ["fanfare_sends_accepted_total", "fanfare_accept_seconds_bucket", "fanfare_http_request_seconds_bucket"])
      try await metricsAreSound(
        deployment, operations,
        [
          "fanfare_sends_settled_total", "fanfare_push_outcomes_total", "fanfare_accept_to_outcome_seconds_bucket",
          "fanfare_pushes_in_flight", "fanfare_sends_in_flight", "fanfare_consumer_lag_records",
          "fanfare_registry_lookup_seconds_bucket",
          "fanfare_push_connections", "fanfare_push_credential_expiry_timestamp_seconds", "fanfare_circuit_state",
        ])
      try await metricsAreSound(
        deployment, deployment.ledger, ["fanfare_ledger_records_total", "fanfare_ledger_duplicates_total"])
      for end in try await deployment.terminate() { #expect(end.status == 0, "\(end.name)") }
    }
  }

  /// Carol logs in on bob's phone. From then on sends to bob do not reach the phone.
  private func phoneChangesHands(_ deployment: Deployment, _ api: Caller, id: String) async throws {
    let body = #"{"platform":"APNS","handle":"\#(Self.phone.uppercased())"}"#
    #expect(try await api.call("PUT", "/api/register/\(id)", user: "carol", body: body).status == 200)
    let before = try await deployment.arrivals("apns", Self.phone).count
    for (user, state) in [("bob", "noTarget"), ("carol", "settled")] {
      let answer = try await api.call(
        "POST", "/api/notifications?pns=apns&to_tag=\(user)", user: "alice", body: #""hi""#)
      let report = try await deployment.settled(try #require(try answer.json["id"] as? String), as: "alice", at: api)
      #expect(report["state"] as? String == state)
    }
    #expect(try await deployment.arrivals("apns", Self.phone).count == before + 1)
    // The id of another user with another handle: 410 tells the app to get a new id. The registration is unchanged.
    let other = #"{"platform":"apns","handle":"\#(String(repeating: "2b", count: 32))"}"#
    #expect(try await api.call("PUT", "/api/register/\(id)", user: "bob", body: other).status == 410)
  }

  /// A secure push carries only an id; its recipient fetches the text.
  private func secretsStay(_ deployment: Deployment, _ api: Caller) async throws {
    let answer = try await api.call(
      "POST", "/api/notifications/secure?to_tag=carol", user: "alice", body: #""the secret""#)
    #expect(answer.status == 200)
    let send = try #require(try answer.json["id"] as? String)
    #expect(try await deployment.settled(send, as: "alice", at: api)["state"] as? String == "settled")
    let payload = try #require(try await deployment.arrivals("apns", Self.phone).last as? [String: Any])
    #expect((payload["aps"] as? [String: Any])?["content-available"] as? Int == 1)
    let id = try #require(payload["secureId"] as? String)
    #expect(try await api.get("/api/notifications/\(id)", user: "bob").status == 404)
    let fetched = try await api.get("/api/notifications/\(id)", user: "carol").json
    #expect(fetched["Payload"] as? String == "the secret")
    #expect(fetched["Read"] as? Bool == false)
    #expect(try await api.get("/api/notifications/\(id)", user: "carol").json["Read"] as? Bool == true)
  }

  /// Any Kafka tool reads the status topic and posts a send.
  private func kcatTakesPart(_ deployment: Deployment, _ api: Caller) async throws {
    let kcat = URL(fileURLWithPath: "/usr/bin/kcat")
    guard FileManager.default.isExecutableFile(atPath: kcat.path) else {
      withKnownIssue("kcat is not installed") { Issue.record("skipped") }
      return
    }
    let send = SendID.timeOrdered(at: SystemWallClock().now())
    let record = #"""
      {"specversion":"1.0","id":"\#(send)","type":"fanfare.send.v1","source":"/kcat","data":{"to":{"user":"bob"},"sender":"kcat","message":{"body":"by hand"}}}
      """#
    let file = deployment.directory.appending(path: "send.json")
    try Data(record.utf8).write(to: file)
    let posted = try ChildProcess(
      ["-P", "-b", deployment.bootstrapServers, "-t", deployment.topics.sends, "-k", "username:bob", file.path],
      name: "kcat",
      program: kcat,
      directory: deployment.directory)
    #expect(try await posted.exitStatus() == 0)
    let report = try await deployment.settled(send.description, as: "operator", at: api)
    #expect(report["state"] as? String == "settled")
    let arrived = try await deployment.arrivals("fcm", Self.android).last as? [String: Any]
    let message = arrived?["message"] as? [String: Any] ?? arrived
    #expect((message?["notification"] as? [String: Any])?["body"] as? String == "by hand")

    let read = try ChildProcess(
      ["-C", "-b", deployment.bootstrapServers, "-t", deployment.topics.status, "-e", "-q", "-f", "%k %s\\n"],
      name: "kcat",
      program: kcat,
      directory: deployment.directory)
    var status: StatusRecord?
    while status == nil {
      let line = try await read.line()
      if line.hasPrefix(send.description + " ") {
        status = try StatusRecord.decode(Array(line.utf8.dropFirst(37))[...])
      }
    }
    #expect(status?.send == send)
    #expect(status?.devices.allSatisfy { $0.outcome == .delivered } == true)
    #expect(try await read.exitStatus() == 0)
  }

  /// A role exports the metrics that dashboards use, and promtool reports no problem.
  private func metricsAreSound(_ deployment: Deployment, _ caller: Caller, _ names: [String]) async throws {
    let answer = try await caller.get("/metrics")
    #expect(answer.status == 200)
    for name in names + ["fanfare_build_info", "process_resident_memory_bytes"] {
      #expect(answer.text.contains("\n\(name){") || answer.text.contains("\n\(name) "), "\(name) is missing")
    }
    let promtool = "/usr/bin/promtool"
    guard FileManager.default.isExecutableFile(atPath: promtool) else {
      withKnownIssue("promtool is not installed") { Issue.record("skipped") }
      return
    }
    let file = deployment.directory.appending(path: "metrics.txt")
    try answer.body.write(to: file)
    let check = try ChildProcess(
      ["-c", "\(promtool) check metrics < '\(file.path)'"], name: "promtool", program: URL(fileURLWithPath: "/bin/sh"),
      directory: deployment.directory)
    #expect(try await check.exitStatus() == 0, "\(check.log)")
  }
}
