import FanfareCore
import Foundation
import Testing

@testable import AzureHub

/// Installations as Azure's clients write them, patch them and read them back.
struct InstallationTests {
  static let body = """
    {"installationId":"phone-1","platform":"apns","pushChannel":"0A0B","userId":"alice","expirationTime":null,
     "tags":["news","$UserId:{alice}"],"pushVariables":{"City":"Wien"},
     "templates":{"alerts":{"body":"{\\"aps\\":{\\"alert\\":\\"$(message)\\"}}","headers":{"apns-push-type":"alert"},
     "expiry":"2030-01-02T03:04:05Z","tags":["loud"]},"My Name":{"body":"{}"}}}
    """

  private func document(_ body: String = Self.body) throws -> InstallationDocument {
    try InstallationDocument(Array(body.utf8)[...], id: "phone-1")
  }

  private func patched(_ operations: String) throws -> InstallationDocument {
    var device = try document()
    try AzurePatch(Array("[\(operations)]".utf8)[...]).apply(to: &device)
    return device
  }

  private func problem(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "accepted"
    } catch { return "\(error)" }
  }

  @Test func installationBecomesARequestWithItsTemplates() throws {
    let request = try document().request(in: .default, at: UnixTime(milliseconds: 0))
    #expect(request.installation == "phone-1" && request.user == "alice" && request.isTrusted)
    #expect(request.platform == .apns && request.handle == "0A0B" && request.tags == ["news"])
    #expect(request.profile?.attributes == ["city": "Wien"])
    #expect(request.templates.map(\.template.name) == ["My Name", "alerts"])
    #expect(request.templates.map(\.tags) == [[], ["loud"]])
    #expect(request.templates[1].template.headers == ["apns-expiration": "1893553445", "apns-push-type": "alert"])
  }

  @Test func rowsAreReadBackAsTheInstallation() throws {
    let request = try document().request(in: .default, at: UnixTime(milliseconds: 0))
    func row(_ tags: [String], _ profile: DeviceProfile?) -> Registration {
      Registration(
        id: .random(), hub: .default, user: request.user, platform: .apns, handle: "0a0b",
        tags: (tags + ["username:alice", "installation:phone-1"]).sorted(), installation: "phone-1",
        registeredAt: UnixTime(milliseconds: 0), createdAt: UnixTime(milliseconds: 0), profile: profile)
    }
    let device = row(request.tags, request.profile)
    let templates = request.templates.map {
      row(request.tags + $0.tags, DeviceProfile(template: $0.template, attributes: ["city": "Wien"]))
    }
    let document = InstallationDocument(id: "phone-1", device: device, parts: templates, isOlder: false)
    let json = document.json(seenAt: UnixTime(milliseconds: 0))
    let object = try #require(
      try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
    #expect(object["installationId"] as? String == "phone-1")
    #expect(object["pushChannel"] as? String == "0A0B")
    #expect(object["pushChannelExpired"] as? Bool == false)
    #expect(object["platform"] as? String == "apns")
    #expect(object["userId"] as? String == "alice")
    #expect(object["tags"] as? [String] == ["news"])
    #expect(object["pushVariables"] as? [String: String] == ["city": "Wien"])
    let alerts = try #require((object["templates"] as? [String: [String: Any]])?["alerts"])
    #expect(alerts["tags"] as? [String] == ["loud"])
    #expect(alerts["headers"] as? [String: String] == ["apns-push-type": "alert"])
    #expect(alerts["expiry"] as? String == "2030-01-02T03:04:05.000Z")
    // The answer can be put back, and means the same.
    #expect(
      try InstallationDocument(json[...], id: "phone-1").request(in: .default, at: UnixTime(milliseconds: 0)).templates
        .count == 2)
  }

  @Test(arguments: [
    // The forms of the SDKs for iOS and Android, .NET, Java and JavaScript.
    ("2030-01-02T03:04+0000", "2030-01-02T03:04:00.000Z"), ("2030-01-02T03:04-0130", "2030-01-02T04:34:00.000Z"),
    ("2030-01-02T03:04:05.1234567Z", "2030-01-02T03:04:05.123Z"), ("2030-01-02T03:04:05", "2030-01-02T03:04:05.000Z"),
    ("2030-01-02T03:04:05.678Z", "2030-01-02T03:04:05.678Z"), ("2030-01-02T03:04Z", "2030-01-02T03:04:00.000Z"),
    ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"), ("", "9999-12-31T23:59:59.9999999Z"),
  ])
  func endIsReadInAllFormsOfClients(text: String, answer: String) throws {
    let document = try document(#"{"platform":"gcm","pushChannel":"t","ExpirationTime":"\#(text)"}"#)
    let json = String(decoding: document.json(seenAt: UnixTime(milliseconds: 0)), as: UTF8.self)
    #expect(json.contains(#""platform":"gcm","expirationTime":"\#(answer)""#), "\(json)")
    let request = try document.request(in: .default, at: UnixTime(milliseconds: 0))
    #expect(request.validUntil?.description == (answer.hasPrefix("9999") ? nil : answer))
    #expect(request.profile?.azure == ["service": "Gcm"])
  }

  @Test func endThatIsNoTimeOrHasPassedIsRefused() throws {
    let now = try #require(UnixTime("2030-01-02T03:04:05Z"))
    for (text, expected) in [
      ("soon", "expirationTime must be a date and time"),
      ("2030-01-02T03:04:05Z", "expirationTime must be in the future"),
    ] {
      let problem = problem {
        _ = try document(#"{"platform":"apns","pushChannel":"0A","expirationTime":"\#(text)"}"#)
          .request(in: .default, at: now)
      }
      #expect(problem.contains(expected), "\(problem)")
    }
    let removed = try patched(#"{"op":"remove","path":"/expirationTime"}"#)
    #expect(removed.validUntil == nil)
    let set = try patched(#"{"op":"replace","path":"/expirationTime","value":"2030-01-02T03:04+0000"}"#)
    #expect(set.validUntil == UnixTime("2030-01-02T03:04:00Z"))
  }

  @Test func templatesComeBackAsTheyWereGiven() throws {
    let given = try document(
      """
      {"platform":"apns","pushChannel":"0A0B","templates":{"t":{"body":"{}","expiry":"2030-01-02T03:04:05",
       "headers":{"Apns-Priority":"5"}}}}
      """)
    let request = try given.request(in: .default, at: UnixTime(milliseconds: 0))
    let template = try #require(request.templates.first)
    func row(_ profile: DeviceProfile?) -> Registration {
      Registration(
        id: .random(), hub: .default, user: request.user, platform: .apns, handle: "0a0b",
        tags: [Tag.username(request.user), "installation:phone-1"], installation: "phone-1",
        registeredAt: UnixTime(milliseconds: 0), createdAt: UnixTime(milliseconds: 0), profile: profile)
    }
    let part = row(DeviceProfile(template: template.template, azure: template.azure))
    let read = InstallationDocument(id: "phone-1", device: row(request.profile), parts: [part], isOlder: false)
    let json = String(decoding: read.json(seenAt: UnixTime(milliseconds: 0)), as: UTF8.self)
    #expect(json.contains(#""headers":{"Apns-Priority":"5"},"expiry":"2030-01-02T03:04:05"}"#), "\(json)")
  }

  @Test func installationWithoutUserHasOneOfItsOwn() throws {
    let document = try document(#"{"platform":"FCMV1","pushChannel":"token"}"#)
    let request = try document.request(in: .default, at: UnixTime(milliseconds: 0))
    #expect(request.platform == .fcm && UserName.isOfDevice(request.user))
    #expect(request.user == (try document.request(in: .default, at: UnixTime(milliseconds: 0)).user))
  }

  @Test(arguments: [
    (#"{"pushChannel":"00"}"#, "platform is missing"),
    (#"{"platform":"mpns","pushChannel":"00"}"#, "platform: mpns is not supported"),
    (#"{"platform":"apns"}"#, "pushChannel is missing"),
    (#"{"platform":"browser","pushChannel":{"endpoint":"x"}}"#, "platform: browser is not supported"),
    (#"{"platform":"apns","pushChannel":"00","installationId":"other"}"#, "installationId must be the id of the path"),
    (#"{"platform":"apns","pushChannel":"00","tags":["a b"]}"#, "tags: a tag must be"),
    (
      #"{"platform":"apns","pushChannel":"00","secondaryTiles":{"t":{}}}"#,
      "secondaryTiles.t belongs to installations with the platform wns"
    ),
    (
      #"{"platform":"apns","pushChannel":"00","templates":{"t":{"headers":{"x-wns-type":"a"}}}}"#, "templates.t.headers"
    ),
    (#"{"platform":"apns","pushChannel":"00""#, "ends in the middle"),
  ])
  func wrongInstallationIsRefusedWithTheFieldsName(body: String, expected: String) {
    let problem = problem { _ = try document(body) }
    #expect(problem.hasPrefix(expected), "\(problem)")
  }

  @Test func idsAndTagsOfOthersAreRefused() throws {
    let other = #"{"platform":"apns","pushChannel":"00","userId":"a","templates":{"t":{"body":"{}","tags":["%"]}}}"#
    for (tag, expected) in [
      ("$UserId:{b}", "templates.t.tags must not name another user than userId"),
      ("$InstallationId:{b}", "templates.t.tags must not name another installation"), ("$UserId:{a}", "accepted"),
    ] {
      let problem = problem {
        _ = try document(other.replacing("%", with: tag)).request(in: .default, at: UnixTime(milliseconds: 0))
      }
      #expect(problem == expected)
    }
    let problem = problem {
      _ = try InstallationDocument(Array(#"{"platform":"apns","pushChannel":"00"}"#.utf8)[...], id: "a=b")
        .request(in: .default, at: UnixTime(milliseconds: 0))
    }
    #expect(problem.hasPrefix("the installation's id must be"))
  }

  @Test func templateThatCannotBeCompiledIsRefused() {
    let problem = problem {
      _ = try document(#"{"platform":"apns","pushChannel":"00","templates":{"t":{"body":"{\"a\":\"$(b\"}"}}}"#)
        .request(in: .default, at: UnixTime(milliseconds: 0))
    }
    #expect(problem.hasPrefix("templates.t.body: native.apns: a, character 4"), "\(problem)")
  }

  @Test(arguments: [
    (#"{"op":"add","path":"/tags","value":"sport"}"#, ["news", "sport"]),
    (#"{"op":"add","path":"/tags","value":"[\"sport\",\"news\",\"art\"]"}"#, ["news", "sport", "art"]),
    (#"{"op":"add","path":"/tags/-","value":"sport"}"#, ["news", "sport"]),
    (#"{"op":"replace","path":"/tags","value":"[\"sport\"]"}"#, ["sport"]),
    (#"{"op":"replace","path":"/tags/news","value":"sport"}"#, ["sport"]),
    (#"{"op":"remove","path":"/tags/news"}"#, []),
    (#"{"op":"remove","path":"/tags/other"}"#, ["news"]),
    (#"{"op":"remove","path":"/tags"}"#, []),
  ])
  func tagsArePatchedByValue(operation: String, expected: [String]) throws {
    let device = try patched(operation)
    #expect(device.tags.tags == expected)
    #expect(try device.request(in: .default, at: UnixTime(milliseconds: 0)).user == "alice")
  }

  @Test func channelUserAndVariablesArePatched() throws {
    let device = try patched(
      """
      {"op":"replace","path":"/pushChannel","value":"0C0D"},{"op":"replace","path":"/userId","value":"bob"},
      {"op":"add","path":"/pushVariables/Country","value":"AT"},{"op":"remove","path":"/pushVariables/City"}
      """)
    let request = try device.request(in: .default, at: UnixTime(milliseconds: 0))
    #expect(request.handle == "0C0D" && request.user == "bob")
    #expect(request.profile?.attributes == ["country": "AT"])
    #expect(
      UserName.isOfDevice(
        try patched(#"{"op":"remove","path":"/userId"}"#).request(in: .default, at: UnixTime(milliseconds: 0)).user))
  }

  @Test func templatesArePatched() throws {
    let device = try patched(
      """
      {"op":"add","path":"/templates/new","value":"{\\"body\\":\\"{}\\",\\"tags\\":[\\"x\\"]}"},
      {"op":"remove","path":"/templates/My Name"},
      {"op":"replace","path":"/templates/alerts/body","value":"{\\"aps\\":{}}"},
      {"op":"add","path":"/templates/alerts/headers","value":"{\\"apns-priority\\":\\"5\\"}"},
      {"op":"replace","path":"/templates/alerts/expiry","value":"0"},
      {"op":"add","path":"/templates/alerts/tags","value":"quiet"},
      {"op":"remove","path":"/templates/alerts/tags/loud"}
      """)
    #expect(Set(device.templates.keys) == ["alerts", "new"])
    let alerts = try #require(device.templates["alerts"])
    #expect(alerts.template.body == #"{"aps":{}}"#)
    #expect(alerts.template.headers == ["apns-push-type": "alert", "apns-priority": "5", "apns-expiration": "0"])
    #expect(alerts.tags.tags == ["quiet"])
  }

  @Test(arguments: [
    (#"{"op":"test","path":"/tags","value":"x"}"#, "[0].op must be"),
    (#"{"op":"add","value":"x"}"#, "[0] must have a path"),
    (#"{"op":"add","path":"/tags"}"#, "[0] /tags: must have a value"),
    (#"{"op":"remove","path":"/pushChannel"}"#, "[0] /pushChannel: cannot be removed"),
    (#"{"op":"replace","path":"/pushChannel","value":"zz"}"#, "[0] /pushChannel: the value must be an even number"),
    (#"{"op":"add","path":"/platform","value":"wns"}"#, "[0] /platform: this path cannot be changed"),
    (#"{"op":"add","path":"/secondaryTiles/t","value":"{}"}"#, "[0] /secondaryTiles/t: the value belongs to"),
    (#"{"op":"add","path":"/secondaryTiles/t/tags","value":"x"}"#, "[0] /secondaryTiles/t/tags: there is no such tile"),
    (
      #"{"op":"add","path":"/templates/none/body","value":"{}"}"#, "[0] /templates/none/body: there is no such template"
    ),
  ])
  func wrongPatchIsRefusedWithOperationAndPath(operation: String, expected: String) {
    let problem = problem { _ = try patched(operation) }
    #expect(problem.hasPrefix(expected), "\(problem)")
  }
}
