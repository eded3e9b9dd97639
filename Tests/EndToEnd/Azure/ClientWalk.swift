import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// Calls every method of the PyPI clients over one connection, and looks at what Fanfare made of it.
struct ClientWalk: Sendable {
  let clients: PyPIClients
  let deployment: Deployment
  /// Fanfare's own API.
  let api: Caller
  let door: AzureDoor
  /// The clients' connection string.
  let connection: String
  /// A word in all names, so that two walks do not meet.
  let name: String

  private var unofficial: PyPIClients.Client { .unofficial(connection) }
  private var rest: PyPIClients.Client { .rest(connection) }

  /// The tag of all devices of the walk.
  private var tag: String { "walk-\(name)" }

  private func handle(_ platform: Platform) -> String { AzureSettings.handle(name, platform) }

  private func installation(_ platform: Platform) -> String { "\(name)-\(platform.name)" }

  func unofficialClient() async throws {
    try await installs()
    try await changesInstallation()
    try await sendsNatively()
    try await sendsTemplates()
    try await refusesUnknownPlatforms()
    try await schedules()
    try await walksRegistrations()
    try await reads()
    try await uninstalls()
  }

  // MARK: Installations

  private func installs() async throws {
    for (platform, word) in [(Platform.apns, "apns"), (.fcm, "gcm"), (.wns, "wns")] {
      let installation: [String: Any] = [
        "installationId": installation(platform), "platform": word, "pushChannel": handle(platform), "tags": [tag],
      ]
      try await succeeds(unofficial, "create_or_update_installation", ["installation": installation])
      let stored = try await stored(platform)
      #expect(stored["handle"] as? String == handle(platform) && (stored["tags"] as? [String])?.contains(tag) == true)
      let read = try await succeeds(unofficial, "get_installation", ["installation_id": self.installation(platform)])
      let channel = (read as? [String: Any])?["pushChannel"] as? String
      // Azure writes Apple's tokens in upper case.
      #expect(channel == (platform == .apns ? handle(platform).uppercased() : handle(platform)), "\(read)")
    }
    let channel = ["endpoint": "https://push.example.com/1", "p256dh": "BKy", "auth": "abc"]
    let browser = try await make(
      "create_browser_installation", ["installation_id": "\(name)-browser", "push_channel": channel, "tags": [tag]])
    try await refused("create_or_update_installation", ["installation": browser])
  }

  /// A template by JSON-Patch, and tags added and removed by value.
  private func changesInstallation() async throws {
    func patch(_ operations: [[String: String]]) async throws {
      try await succeeds(
        unofficial, "update_installation", ["installation_id": installation(.apns), "patches": operations])
    }
    let template = #"{"body":"{\"aps\":{\"alert\":\"{$(greeting) + ' from ' + $(sender)}\"}}"}"#
    try await patch([
      ["op": "add", "path": "/tags", "value": "extra-\(name)"],
      ["op": "add", "path": "/tags", "value": "gone-\(name)"],
      ["op": "add", "path": "/templates/greeting", "value": template],
    ])
    try await patch([["op": "remove", "path": "/tags/gone-\(name)"]])
    let tags = try await stored(.apns)["tags"] as? [String] ?? []
    #expect(tags.contains("extra-\(name)") && !tags.contains("gone-\(name)"), "\(tags)")
  }

  private func uninstalls() async throws {
    for platform in Platform.allCases {
      let path = "/api/installations/\(installation(platform))"
      try await succeeds(unofficial, "delete_installation", ["installation_id": installation(platform)])
      #expect(try await api.get(path, user: "operator").status == 404)
      // As with Azure, deleting what is absent succeeds.
      try await succeeds(unofficial, "delete_installation", ["installation_id": installation(platform)])
    }
    #expect(try await registrations() == [])
    try await succeeds(unofficial, "close", [:])
  }

  // MARK: Sends

  private func sendsNatively() async throws {
    for (factory, maker, arguments, platform) in [
      ("create_apple_notification", "create_apple_body", ["alert": "%", "badge": 3], .apns),
      ("create_fcm_legacy_notification", "create_fcm_legacy_body", ["data": ["message": "%"]], .fcm),
      ("create_fcm_v1_notification", "create_fcm_v1_body", ["notification": ["title": "t", "body": "%"]], .fcm),
      ("create_windows_toast_notification", "create_windows_toast_body", ["text": "%"], .wns),
      ("create_windows_tile_notification", nil, ["": "<tile><visual><text>%</text></visual></tile>"], .wns),
      ("create_windows_badge_notification", nil, ["": "<badge value=\"%\"/>"], .wns),
      ("create_windows_raw_notification", nil, ["": "raw %"], .wns),
      ("create_windows_notification", nil, ["": "<toast>%</toast>"], .wns),
    ] as [(String, String?, [String: Any], Platform)] {
      let text = "\(name)-\(factory)"
      let filled = Self.filled(arguments, with: text)
      let body = if let maker { try await make(maker, filled) } else { filled[""] ?? "" }
      let notification = try await make(factory, ["body": body])
      let send = try await newSend {
        try await succeeds(unofficial, "send_notification", ["notification": notification, "tag_expression": tag])
      }
      try await arrives(text, send: send, on: platform)
    }
    let alert = try await make("create_apple_notification", ["body": #"{"aps":{"alert":"all \#(name)"}}"#])
    let broadcast = try await newSend {
      try await succeeds(unofficial, "send_broadcast_notification", ["notification": alert])
    }
    try await arrives("all \(name)", send: broadcast, on: .apns)
  }

  private func sendsTemplates() async throws {
    let notification = try await make(
      "create_template_notification", ["body": ["greeting": "Hello \"\(name)\"", "sender": "alice"]])
    let send = try await newSend {
      try await succeeds(unofficial, "send_notification", ["notification": notification, "tag_expression": tag])
    }
    try await arrives("Hello \"\(name)\" from alice", send: send, on: .apns)
    // The template's name is a tag by itself, as Azure has it.
    let named = try await make("create_template_notification", ["body": ["greeting": "Named", "sender": name]])
    let second = try await newSend {
      try await succeeds(unofficial, "send_notification", ["notification": named, "tag_expression": "greeting"])
    }
    try await arrives("Named from \(name)", send: second, on: .apns)
  }

  private func refusesUnknownPlatforms() async throws {
    let before = try await sends()
    for (factory, body) in [
      ("create_adm_notification", try await make("create_adm_body", ["data": ["k": "v"]])),
      ("create_baidu_notification", try await make("create_baidu_body", ["title": "t"])),
      ("create_browser_notification", ["title": "t"]), ("create_xiaomi_notification", ["title": "t"]),
      ("create_windowsphone_notification", try await make("create_windowsphone_toast_body", ["text1": "t"])),
    ] as [(String, Any)] {
      let notification = try await make(factory, ["body": body])
      try await refused("send_notification", ["notification": notification, "tag_expression": tag])
    }
    #expect(try await sends() == before)
  }

  private func schedules() async throws {
    let notification = try await make("create_apple_notification", ["body": #"{"aps":{"alert":"later \#(name)"}}"#])
    let due = UnixTime(milliseconds: SystemWallClock().now().milliseconds / 1000 * 1000) + .seconds(3600)
    let time = ["$time": due.description.replacing("Z", with: "+00:00")]
    for (method, arguments) in [
      ("schedule_notification", ["tag_expression": tag]), ("schedule_broadcast_notification", [:]),
    ] {
      let order: [String: Any] = ["scheduled_time": time, "notification": notification]
      let id = try await newSend(state: "scheduled") {
        try await succeeds(unofficial, method, order.merging(arguments) { $1 })
      }
      let report = try await api.get("/api/sends/\(id)", user: "operator").json
      #expect(report["sendAt"] as? String == due.description, "\(report)")
      try await succeeds(unofficial, "cancel_scheduled_notification", ["notification_id": id])
      let cancelled = try await api.get("/api/sends/\(id)", user: "operator").json
      #expect(cancelled["state"] as? String == "cancelled", "\(cancelled)")
    }
  }

  // MARK: Registrations and reading

  private func walksRegistrations() async throws {
    let own = try await registrations()
    // A native one for each platform, and the template's.
    #expect(own.count == 4)
    let listed = try await succeeds(unofficial, "list_registrations", ["top": 100])
    let ids = (listed as? [[String: Any]] ?? []).compactMap { $0["RegistrationId"] as? String }
    #expect(Set(own).isSubset(of: ids), "\(listed)")
    for id in own {
      let read = try await succeeds(unofficial, "get_registration", ["registration_id": id]) as? [String: Any]
      #expect((read?["Tags"] as? [String])?.contains(tag) == true && read?["etag"] != nil, "\(read ?? [:])")
    }
    let last = try #require(own.last)
    try await succeeds(unofficial, "delete_registration", ["registration_id": last])
    #expect(try await api.get("/api/registrations/\(last)", user: "operator").status == 404)
    let gone = try await clients.call(unofficial, "get_registration", ["registration_id": last])
    #expect(gone.status == 404, "\(gone)")
  }

  private func reads() async throws {
    // It expects JSON where Azure answers text: with Azure it returns "" or fails, so only the server's side counts.
    _ = try await clients.call(unofficial, "get_feedback_container_url")
    let feedback = try await door.send("GET", "/feedbackcontainer")
    #expect(feedback.status == 200 && feedback.body.hasPrefix("http"), "\(feedback)")
    let token = try await make(
      "create_sas_token",
      [
        "shared_access_key_name": door.rule, "shared_access_key": door.key, "audience": "http://\(door.address)/",
      ])
    let answer = try await api.call(
      "GET", "/default/registrations?api-version=2020-06", headers: [("Authorization", token as? String ?? "")])
    #expect(answer.status == 200, "\(answer.text)")
  }

  // MARK: notificationhubs-rest-python

  func restClient() async throws {
    for (platform, word) in [(Platform.apns, "apns"), (.fcm, "gcm"), (.wns, "wns")] {
      let template =
        platform == .apns ? #","templates":{"rest":{"body":"{\"aps\":{\"alert\":\"$(rest)\"}}"}}"# : ""
      let answer = try await door.send(
        "PUT", "/installations/\(installation(platform))", headers: [("Content-Type", "application/json")],
        body:
          #"{"installationId":"\#(installation(platform))","platform":"\#(word)","pushChannel":"\#(handle(platform))","tags":["\#(tag)","rest"]\#(template)}"#
      )
      #expect(answer.status == 200, "\(answer.body)")
    }
    for (method, payload, platform) in [
      ("send_apple_notification", ["aps": ["alert": "%"]], .apns),
      ("send_google_notification", ["data": ["message": "%"]], .fcm),
      ("send_windows_notification", "<toast><visual><text>%</text></visual></toast>", .wns),
    ] as [(String, Any, Platform)] {
      for (way, arguments) in [
        ("tagged", ["is_direct": false, "tags": ["$set": [tag, "nobody"]]]),
        ("direct", ["is_direct": true, "device_handle": handle(platform)]),
      ] as [(String, [String: Any])] {
        let text = "rest-\(way)-\(method)"
        let filled = Self.filled(["": payload], with: text)[""] ?? ""
        let send = try await newSend {
          let result = try await succeeds(rest, method, arguments.merging(["payload": filled]) { $1 })
          #expect((result as? [Any])?.first as? Int == 201)
        }
        try await arrives(text, send: send, on: platform)
      }
    }
    let send = try await newSend {
      try await succeeds(rest, "send_template_notification", ["properties": ["rest": "templated"], "tags": "rest"])
    }
    try await arrives("templated", send: send, on: .apns)

    let payload: [String: Any] = ["aps": ["alert": "tested"]]
    let order: [String: Any] = ["is_direct": false, "tags": tag, "payload": payload]
    let test = try await clients.call(rest, "send_apple_notification", order, isDebug: true)
    #expect(test.error == nil && test.output.contains("<NotificationOutcome"), "\(test)")
    #expect(test.output.contains("<Success>1</Success>"), "\(test.output)")
    try await eventually("the test push to arrive") { try await payloads(.apns).contains { $0.contains("tested") } }

    let due = ["$time": (SystemWallClock().now() + .seconds(3600)).description.replacing("Z", with: "+00:00")]
    let id = try await newSend(state: "scheduled") {
      try await succeeds(rest, "send_apple_notification", order.merging(["scheduled_time": due]) { $1 })
    }
    #expect(try await door.send("DELETE", "/schedulednotifications/\(id)").status == 200)

    let before = try await sends()
    for (method, payload) in [
      ("send_amazon_notification", ["data": ["k": "v"]]), ("send_baidu_notification", ["title": "t"]),
      ("send_windows_phone_notification", "<wp:Toast></wp:Toast>"),
    ] as [(String, Any)] {
      let reply = try await clients.call(rest, method, ["is_direct": false, "tags": tag, "payload": payload])
      #expect(reply.error?.contains("Received HTTP code 400") == true, "\(reply)")
    }
    #expect(try await sends() == before)
  }

  // MARK: What Fanfare knows

  /// The installation's registration, by Fanfare's own API.
  private func stored(_ platform: Platform) async throws -> [String: Any] {
    try await api.get("/api/installations/\(installation(platform))", user: "operator").json
  }

  /// The ids of the walk's registrations, sorted.
  private func registrations() async throws -> [String] {
    let answer = try await api.get("/api/registrations?tag=\(tag)", user: "operator").json
    return (answer["registrations"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }.sorted()
  }

  private func sends(state: String? = nil) async throws -> Set<String> {
    let filter = state.map { "&state=\($0)" } ?? ""
    let answer = try await api.get("/api/sends?limit=100\(filter)", user: "operator").json
    return Set((answer["sends"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String })
  }

  /// The id of the one send that `body` makes. The client does not tell it.
  private func newSend(state: String? = nil, _ body: () async throws -> Void) async throws -> String {
    let before = try await sends(state: state)
    try await body()
    try await eventually("a send in the history") { try await !sends(state: state).isSubset(of: before) }
    let new = try await sends(state: state).subtracting(before)
    #expect(new.count == 1, "\(new)")
    return try #require(new.first)
  }

  private func payloads(_ platform: Platform) async throws -> [String] {
    try await deployment.arrivals(platform.name, AzureSettings.device(name, platform)).map { payload in
      guard let text = payload as? String else {
        return String(
          decoding: try JSONSerialization.data(withJSONObject: payload, options: [.withoutEscapingSlashes]),
          as: UTF8.self)
      }
      return text
    }
  }

  /// Expects that the send settles, that the clients' telemetry knows it, and that its text came once to the device.
  private func arrives(_ text: String, send: String, on platform: Platform) async throws {
    let report = try await deployment.settled(send, as: "operator", at: api)
    #expect(report["state"] as? String == "settled", "\(report)")
    let quoted = text.replacing("\"", with: "\\\"")
    let payloads = try await payloads(platform)
    #expect(payloads.count { $0.contains(quoted) } == 1, "\(text): \(payloads)")
    let details =
      try await succeeds(
        unofficial, "get_notification_outcome_details", ["notification_id": send]) as? [String: Any]
    let xml = details?["_raw_xml"] as? String ?? ""
    #expect(xml.contains("<State>Completed</State>") && xml.contains("<Name>Success</Name>"), "\(xml)")
  }

  @discardableResult private func succeeds(
    _ client: PyPIClients.Client, _ method: String, _ arguments: [String: Any]
  ) async throws -> Any {
    let reply = try await clients.call(client, method, arguments)
    #expect(reply.error == nil, "\(client.name).\(method): \(reply.error ?? "")")
    return reply.result ?? NSNull()
  }

  /// Expects that the server refuses the call and names the platform.
  private func refused(_ method: String, _ arguments: [String: Any]) async throws {
    let reply = try await clients.call(unofficial, method, arguments)
    #expect(reply.status == 400 && reply.error?.contains("<Error><Code>400</Code>") == true, "\(method): \(reply)")
  }

  /// What a function of the package returns.
  private func make(_ factory: String, _ arguments: [String: Any]) async throws -> Any {
    try await succeeds(.factories, factory, arguments)
  }

  /// The arguments with the text in place of `%`.
  private static func filled(_ arguments: [String: Any], with text: String) -> [String: Any] {
    arguments.mapValues { value in
      switch value {
      case let string as String: string.replacing("%", with: text)
      case let object as [String: Any]: filled(object, with: text)
      default: value
      }
    }
  }
}
