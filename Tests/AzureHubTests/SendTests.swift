import FanfareCore
import Foundation
import NIOHTTP1
import Registry
import Support
import Testing

@testable import AzureHub

@Suite struct SendTests {
  @Test func aNativeSendIsProducedForItsTags() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/Orders/Messages/?API-Version=2020-06",
        headers: [
          ("servicebusnotification-format", "Apple"), ("ServiceBusNotification-Tags", "(news && !muted) || vip"),
          ("apns-push-type", "alert"), ("apns-priority", "5"), ("TrackingId", "0d3c7a52-client"),
        ], body: #"{"aps":{"alert":"hi"}}"#)
      #expect(reply.status == 201, "\(reply.text)")
      #expect(reply.text.isEmpty)
      #expect(reply["TrackingId"] == "0d3c7a52-client")
      let send = try #require(try harness.sink.sends().first)
      #expect(
        reply["Location"] == "http://127.0.0.1:\(harness.port)/Orders/messages/\(send.id)?api-version=2020-06")
      #expect(reply.send == send.id)
      #expect(send.hub.rawValue == "orders")
      #expect(send.audience == .expression(try TagExpression("(news && !muted) || vip")))
      #expect(send.platforms == PlatformSet(.apns))
      #expect(send.content.apns == Array(#"{"aps":{"alert":"hi"}}"#.utf8))
      #expect(send.content.headers == ["apns-push-type": "alert", "apns-priority": "5"])
    }
  }

  @Test(arguments: [
    ("", Audience.everyone), ("news", .tag("news")), ("$UserId:{zoë}", .user("zoë")), ("$UserId:bob", .user("bob")),
    ("username:bob", .user("bob")), ("$InstallationId:{a-1}", .tag("installation:a-1")),
    ("b || a", .tags(["a", "b"])), ("(a||$InstallationId:{x})", .tags(["a", "installation:x"])),
    ("!$userid:{bob}", .expression(.not(.tag("username:bob")))),
  ])
  func tagsAreTranslated(text: String, audience: Audience) throws {
    #expect(try AzureTag.audience(of: text) == audience)
  }

  @Test(arguments: [
    ("gcm", #"{"data":{"a":"b"}}"#, #"{"data":{"a":"b"}}"#),
    ("fcmV1", #"{"message":{"data":{"a":"b"}}}"#, #"{"data":{"a":"b"}}"#),
    // .NET writes a byte order mark.
    ("gcm", "\u{FEFF}" + #"{"data":{"a":"b"}}"#, #"{"data":{"a":"b"}}"#),
  ])
  func messagesForFCMAreTakenFromBothForms(format: String, body: String, message: String) async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages", headers: [("ServiceBusNotification-Format", format)], body: body)
      #expect(reply.status == 201, "\(reply.text)")
      let send = try #require(try harness.sink.sends().first)
      #expect(send.content.fcm == Array(message.utf8))
      #expect(send.audience == .everyone)
      #expect(send.platforms == PlatformSet(.fcm))
    }
  }

  @Test func headersForWindowsArePassedOn() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages",
        headers: [
          ("ServiceBusNotification-Format", "windows"), ("X-WNS-Type", "wns/raw"), ("X-WNS-TTL", "60"),
          ("Content-Type", "application/octet-stream"), ("apns-priority", "5"),
        ], body: "raw")
      #expect(reply.status == 201, "\(reply.text)")
      let content = try #require(try harness.sink.sends().first).content
      #expect(content.wns == "raw")
      #expect(content.headers == ["x-wns-type": "wns/raw", "x-wns-ttl": "60"])
    }
  }

  /// Format, header fields, body, and the member that the answer names.
  @Test(arguments: [
    ("apple", [("apns-push-type", "voip")], #"{"aps":{"alert":"a"}}"#, "apns-push-type"),
    ("apple", [("apns-priority", "7")], #"{"aps":{"alert":"a"}}"#, "apns-priority"),
    ("apple", [("apns-expiration", "1795248000000")], #"{"aps":{"alert":"a"}}"#, "apns-expiration"),
    (
      "apple", [], #"{"aps":{"alert":"\#(String(repeating: "x", count: 4096))"}}"#, "native.apns must have at most 4096"
    ),
    ("windows", [("X-WNS-Type", "wns/toast"), ("X-WNS-TTL", "3.5s")], "<toast/>", "x-wns-ttl"),
    ("windows", [("X-WNS-Type", "wns/loud")], "<toast/>", "x-wns-type"),
    ("windows", [("X-WNS-Type", "wns/raw")], String(repeating: "x", count: 5001), "native.wns must have at most 5000"),
    ("gcm", [], #"{"to":"t","data":{"a":"b"}}"#, "native.fcm.to"), ("gcm", [], "{}", "native.fcm"),
    ("gcm", [], #"{"data":{"from":"b"}}"#, "native.fcm.data.from"),
    ("fcmv1", [], #"{"message":{"token":"t","data":{"a":"b"}}}"#, "native.fcm.token"),
    ("fcmv1", [], #"{"message":{"data":{"google.x":"b"}}}"#, "native.fcm.data.google.x"),
  ])
  func contentThatTheServiceWouldRefuseIsRefused(
    format: String, headers: [(String, String)], body: String, named: String
  ) async throws {
    try await AzureHarness.run { harness in
      let moment = (harness.clock.now() + .seconds(60)).description
      for path in ["/orders/messages", "/orders/schedulednotifications"] {
        let reply = try await harness.request(
          .POST, path,
          headers: [
            ("ServiceBusNotification-Format", format), ("ServiceBusNotification-ScheduleTime", moment),
          ] + headers, body: body)
        #expect(reply.status == 400 && reply.text.contains(named), "\(reply.status) \(reply.text)")
      }
      #expect(try harness.sink.sends().isEmpty)
    }
  }

  @Test func templateSendsBringProperties() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages",
        headers: [("ServiceBusNotification-Format", "template"), ("ServiceBusNotification-Tags", "$UserId:{bob}")],
        body: #"{"Message":"hi","n":"1"}"#)
      #expect(reply.status == 201, "\(reply.text)")
      let send = try #require(try harness.sink.sends().first)
      #expect(send.content.template == TemplateContent(properties: ["message": "hi", "n": "1"]))
      #expect(send.audience == .user("bob"))
      #expect(send.platforms == .all)
      let nested = try await harness.request(
        .POST, "/orders/messages", headers: [("ServiceBusNotification-Format", "template")], body: #"{"a":{"b":"c"}}"#)
      #expect(nested.status == 400)
    }
  }

  /// By the front end's own rule: a template of the hub, else the devices' own ones of the name.
  @Test func aTemplateOfTheHubIsNamedByAHeader() async throws {
    try await AzureHarness.run { harness in
      let hub = try #require(HubName("orders"))
      _ = try await harness.registry.store(
        template: "order-shipped", defaultLocale: "en",
        variants: ["en": Content(message: Message(title: "$(title)"))], hub: hub, at: harness.clock.now())
      func send(_ name: String, _ format: String = "template") async throws -> AzureReply {
        try await harness.request(
          .POST, "/orders/messages",
          headers: [("ServiceBusNotification-Format", format), ("fanfare-template", name)], body: #"{"title":"hi"}"#)
      }
      for name in ["order-shipped", "own"] { #expect(try await send(name).status == 201) }
      #expect(
        try harness.sink.sends().map(\.content.template) == [
          TemplateContent(name: "order-shipped", version: 1, properties: ["title": "hi"]),
          TemplateContent(name: "own", properties: ["title": "hi"]),
        ])
      let native = try await send("own", "apple")
      #expect(native.status == 400 && native.text.contains("Fanfare-Template"), "\(native.text)")
      #expect(try await send(String(repeating: "x", count: 201)).status == 400)
      #expect(try harness.sink.sends().count == 2)
    }
  }

  /// A template has header fields of its own.
  @Test func headersOfATemplateSendHaveNoEffect() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages",
        headers: [
          ("ServiceBusNotification-Format", "template"), ("apns-priority", "5"), ("X-WNS-Type", "wns/raw"),
          ("ServiceBusNotification-Apns-Expiry", "2030-01-02T03:04:05"),
        ], body: #"{"a":"b"}"#)
      #expect(reply.status == 201, "\(reply.text)")
      let send = try #require(try harness.sink.sends().first)
      #expect(send.content == Content(template: TemplateContent(properties: ["a": "b"])) && send.timeToLive == nil)
    }
  }

  @Test func anExpiryEndsTheSendToo() async throws {
    try await AzureHarness.run { harness in
      let now = harness.clock.now()
      let (soon, later) = (now + .seconds(90), now + .seconds(3600))
      for (name, value) in [
        ("apns-expiration", String(soon.seconds)), ("ServiceBusNotification-Apns-Expiry", later.description),
        ("apns-expiration", "0"),
      ] {
        let reply = try await harness.request(
          .POST, "/orders/messages", headers: [("ServiceBusNotification-Format", "apple"), (name, value)], body: "{}")
        #expect(reply.status == 201, "\(reply.text)")
      }
      let sends = try harness.sink.sends()
      #expect(sends.map(\.timeToLive) == [90, 3600, nil])
      #expect(sends.map { $0.content.headers["apns-expiration"] } == ["\(soon.seconds)", "\(later.seconds)", "0"])
    }
  }

  @Test(arguments: [
    ([("ServiceBusNotification-Format", "adm")], "{}", "adm is not supported"),
    ([("ServiceBusNotification-Format", "pigeon")], "{}", "is unknown"),
    ([], "{}", "Format is missing"),
    ([("ServiceBusNotification-Format", "apple")], "[1]", "object"),
    ([("ServiceBusNotification-Format", "apple")], "", "no body"),
    (
      [("ServiceBusNotification-Format", "fcmv1")], #"{"validate_only":true,"message":{"data":{}}}"#, "beside message"
    ),
    ([("ServiceBusNotification-Format", "apple"), ("apns-push-type", "voip")], "{}", "apns-push-type"),
    ([("ServiceBusNotification-Format", "apple"), ("apns-expiration", "soon")], "{}", "apns-expiration"),
    ([("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-Tags", "a &&")], "{}", "character 5"),
    (
      [("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-Tags", "$Foo:{a}")], "{}", "InstallationId"
    ),
  ])
  func invalidSendsAreRefusedByName(headers: [(String, String)], body: String, reason: String) async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(.POST, "/orders/messages", headers: headers, body: body)
      #expect(reply.status == 400)
      #expect(reply.text.contains("<Code>400</Code>") && reply.text.contains(reason), "\(reply.text)")
      #expect(try harness.sink.sends().isEmpty)
    }
  }

  @Test(arguments: ["direct", "direct=", "Direct=true"])
  func aDirectSendGoesToOneHandle(flag: String) async throws {
    try await AzureHarness.run { harness in
      let headers = [("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-DeviceHandle", "0A0B")]
      let reply = try await harness.request(
        .POST, "/orders/messages?\(flag)&api-version=2015-04", headers: headers, body: "{}")
      #expect(reply.status == 201, "\(reply.text)")
      let send = try #require(try harness.sink.sends().first)
      #expect(send.audience == .device(.apns, handle: "0a0b"))
      #expect(reply["Location"]?.hasSuffix("/orders/messages/\(send.id)?api-version=2015-04&direct") == true)
      let bad = try await harness.request(
        .POST, "/orders/messages?\(flag)", headers: [headers[0], ("ServiceBusNotification-DeviceHandle", "xyz")],
        body: "{}")
      #expect(bad.status == 400 && !bad.text.contains("xyz"))
    }
  }

  /// As .NET, JavaScript and Go write it.
  @Test(arguments: [
    ("multipart/mixed; boundary = \"b1\"", "\r\n", "inline; name=notification", #"["0A","0b","0a"]"#),
    ("multipart/mixed; boundary=\"b1\"", "\r\n", "inline; name=\"notification\"", #"["0A", "0b"]"#),
    ("multipart/form-data; boundary=b1", "\n", "form-data; name=\"notification\"", "['0A','0b']"),
  ])
  func aBatchSendsToEachHandleOnce(type: String, end: String, disposition: String, devices: String) async throws {
    let parts = [
      "--b1", "Content-Disposition: \(disposition)", "Content-Type: application/json", "", #"{"aps":{}}"#, "--b1",
      "Content-Disposition: \(disposition.replacing("notification", with: "devices"))", "", devices, "--b1--", "",
    ]
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages/$batch?direct&api-version=2020-06",
        headers: [("Content-Type", type), ("ServiceBusNotification-Format", "apple")],
        body: parts.joined(separator: end))
      #expect(reply.status == 201, "\(reply.text)")
      let sends = try harness.sink.sends()
      #expect(sends.map(\.audience) == [.device(.apns, handle: "0a"), .device(.apns, handle: "0b")])
      #expect(sends.allSatisfy { $0.content.apns == Array(#"{"aps":{}}"#.utf8) })
      let text = try #require(reply["Location"]?.split(separator: "?").first?.split(separator: "/").last)
      let id = try #require(NotificationID(String(text)))
      #expect(id.sends == sends.map(\.id))
      #expect(reply["Location"]?.contains("/orders/messages/$batch/") == true)
    }
  }

  private static func part(_ name: String, _ content: String) -> String {
    "--b\r\nContent-Disposition: inline; name=\(name)\r\n\r\n\(content)\r\n"
  }

  /// A batch to as many handles, each of them another.
  private static func batch(toHandles count: Int) -> String {
    let handles = (0..<count).map { String(format: "\"%064x\"", $0) }.joined(separator: ",")
    return part("notification", "{}") + part("devices", "[\(handles)]") + "--b--"
  }

  private static let batchHeaders = [
    ("Content-Type", "multipart/mixed; boundary=b"), ("ServiceBusNotification-Format", "apple"),
  ]

  @Test func aBatchMayHaveAThousandHandles() async throws {
    try await AzureHarness.run { harness in
      let reply = try await harness.request(
        .POST, "/orders/messages/$batch?direct", headers: Self.batchHeaders, body: Self.batch(toHandles: 1000))
      #expect(reply.status == 201, "\(reply.text)")
      let sends = try harness.sink.sends()
      #expect(sends.map(\.audience) == (0..<1000).map { .device(.apns, handle: String(format: "%064x", $0)) })
      let text = try #require(reply["Location"]?.split(separator: "?").first?.split(separator: "/").last)
      #expect(NotificationID(String(text))?.sends == sends.map(\.id))
    }
  }

  @Test func aBatchIsRefusedAsAWhole() async throws {
    let notification = Self.part("notification", "{}")
    func body(_ devices: String) -> String { notification + Self.part("devices", devices) + "--b--" }
    let missing = "Could not find a part of the multipart content supplied"
    let cases = [
      ("--b--", missing), (notification + "--b--", missing), (Self.part("devices", #"["0a"]"#) + "--b--", missing),
      (body("[]"), "no device"), (body(#"["0a","xyz"]"#), "hexadecimal"), (Self.batch(toHandles: 1001), "1000"),
      (body("{}"), "devices"),
    ]
    try await AzureHarness.run { harness in
      for (body, reason) in cases {
        let reply = try await harness.request(
          .POST, "/orders/messages/$batch?direct", headers: Self.batchHeaders, body: body)
        #expect(reply.status == 400 && reply.text.contains(reason), "\(reply.text)")
      }
      let other = try await harness.request(
        .POST, "/orders/messages/$batch?direct",
        headers: [("Content-Type", "application/json"), ("ServiceBusNotification-Format", "apple")], body: body("[]"))
      #expect(other.status == 400 && other.text.contains("boundary"), "\(other.text)")
      #expect(try harness.sink.sends().isEmpty)
    }
  }

  /// `İ` is longer in lower case.
  @Test func aMediaTypeThatIsNotASCIIIsRefused() async throws {
    try await AzureHarness.run { harness in
      let type = "multipart/\(String(repeating: "İ", count: 40)); boundary=x"
      let reply = try await harness.request(
        .POST, "/orders/messages/$batch?direct",
        headers: [("Content-Type", type), ("ServiceBusNotification-Format", "apple")], body: "--x--")
      #expect(reply.status == 400 && reply.text.contains("boundary"), "\(reply.text)")
    }
  }

  /// Without tags it would go to everyone.
  @Test func aHandleWithoutDirectIsRefused() async throws {
    try await AzureHarness.run { harness in
      let headers = [
        ("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-DeviceHandle", "0a"),
        ("ServiceBusNotification-ScheduleTime", "2099-01-02T03:04:05"),
      ]
      for (path, headers) in [
        ("messages", headers), ("schedulednotifications", headers),
        ("schedulednotifications?direct", headers.filter { $0.0 != "ServiceBusNotification-DeviceHandle" }),
      ] {
        let reply = try await harness.request(.POST, "/orders/\(path)", headers: headers, body: "{}")
        #expect(reply.status == 400, "\(path): \(reply.text)")
      }
      #expect(try harness.sink.sends().isEmpty)
    }
  }

  @Test func aRepeatedKeyGivesTheSameIDs() async throws {
    let batch = Self.part("notification", "{}") + Self.part("devices", #"["0a","0b"]"#) + "--b--"
    try await AzureHarness.run { harness in
      for (path, type, body, count) in [
        ("/orders/messages", "application/json", "{}", 1),
        ("/orders/messages/$batch?direct", "multipart/mixed; boundary=b", batch, 3),
      ] {
        let headers = [
          ("ServiceBusNotification-Format", "apple"), ("Idempotency-Key", path), ("Content-Type", type),
        ]
        let first = try await harness.request(.POST, path, headers: headers, body: body)
        let second = try await harness.request(.POST, path, headers: headers, body: body)
        #expect(first.status == 201 && second.status == 201)
        #expect(first["Location"] == second["Location"])
        #expect(try harness.sink.sends().count == count)
        let other = try await harness.request(
          .POST, path, headers: headers, body: body.replacing("{}", with: #"{"aps":1}"#))
        #expect(other.status == 409)
      }
    }
  }

  @Test func requestsToANamedHostAreTakenWhateverTheirPath() async throws {
    try await AzureHarness.run({ setup in setup.configuration.hosts = ["ns.example.com"] }) { harness in
      let token = AzureToken.send.text(for: "https://ns.example.com/orders/messages", at: harness.clock.now())
      let headers = [("Authorization", token), ("ServiceBusNotification-Format", "apple")]
      // A proxy may keep the name or replace it.
      for host in ["ns.example.com", "ns.example.com:8443", "127.0.0.1"] {
        let reply = try await harness.request(
          .POST, "/orders/messages", as: nil, headers: headers + [("Host", host)], body: "{}")
        #expect(reply.status == 201, "\(reply.text)")
        #expect(reply["Location"]?.hasPrefix("http://\(host)/orders/messages/") == true)
      }
      let own = try await harness.request(.GET, "/healthz", as: nil, headers: [("Host", "ns.example.com")])
      #expect(own.status == 401 && own.text.contains("MissingToken"))
    }
  }

  @Test func routesAreFoundByPrefixAndName() async throws {
    try await AzureHarness.run({ setup in
      setup.configuration.prefix = ["anh", "v1"]
      setup.configuration.aliases = ["my_orders": HubName("orders") ?? .default]
    }) { harness in
      let headers = [("ServiceBusNotification-Format", "gcm")]
      let found = try await harness.request(
        .POST, "/anh/V1/My_Orders/messages", as: .full.with { $0.resource = .host }, headers: headers,
        body: #"{"data":{"a":"b"}}"#)
      #expect(found.status == 201, "\(found.text)")
      #expect(try harness.sink.sends().map(\.hub.rawValue) == ["orders"])
      // Without the prefix, and without a token, it is the front end's own business.
      let own = try await harness.request(.POST, "/orders/messages", as: nil, headers: headers, body: "{}")
      #expect(own["Content-Type"] == "application/problem+json")
    }
  }
}
