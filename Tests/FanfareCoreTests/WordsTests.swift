import FanfareCore
import Testing

@Suite struct WordsTests {
  @Test func identifiersAreCanonicalAndOrdered() {
    let id = SendID(high: 0x0190_F5FE_7C00_7000, low: 0x8000_0000_0000_00FF)
    #expect(id.description == "0190f5fe-7c00-7000-8000-0000000000ff")
    #expect(SendID(id.description.uppercased()) == id)
    #expect(SendID(bytes: id.bytes) == id)
    for text in [
      "", "0190f5fe7c0070008000000000000000ff", "0190f5fe-7c00-7000-8000-0000000000fg",
      "0190f5fe_7c00-7000-8000-0000000000ff",
    ] {
      #expect(SendID(text) == nil)
    }
    let earlier = SendID.timeOrdered(at: UnixTime(milliseconds: 1_000))
    #expect(earlier < SendID.timeOrdered(at: UnixTime(milliseconds: 1_001)))
    #expect(earlier.description.dropFirst(14).first == "7")
    #expect(RegistrationID.random().description.dropFirst(14).first == "4")
    #expect(SendID.random() != SendID.random())
  }

  /// Ledgers and front ends identify an audience only by its text, which is cut to a limit.
  @Test func longListOfUsersIsNotOneUser() {
    let users = (1...4).map { "username:\($0)" + String(repeating: "0123456789abcdef", count: 4) }
    let wide = (1...4).map { "username:\($0)" + String(repeating: "\u{1F3BA}", count: 60) }
    for audience in [Audience.tags(users), .tags(wide), .expression(.all(users.map(TagExpression.tag)))] {
      #expect(audience.isBroadcast)
      #expect(Audience.isBroadcast(text: audience.text))
      #expect(audience.text.utf8.count <= 256)
    }
    #expect(!Audience.isBroadcast(text: Audience.user(String(repeating: "u", count: 64)).text))
  }

  @Test func userNameThatReadsAsAnExpressionIsAUserName() throws {
    for name in ["a && b", "a || b", "a && \"b\\", "\" && \"", "a && b\\"] {
      for audience in [Audience.user(name), .tag(Tag.username(name))] {
        #expect(!audience.isBroadcast)
        #expect(!Audience.isBroadcast(text: audience.text), "\(audience.text)")
      }
    }
    let expression = try Audience.expression(TagExpression("username:a && b"))
    #expect(Audience.isBroadcast(text: expression.text))
    #expect(Audience.user("a && b").text != expression.text)
    #expect(try Audience.isBroadcast(text: TagExpression("\"username:a && b\" && c").description))
    #expect(try Audience.isBroadcast(text: TagExpression("\"username:zoë\" || \"username:a\\\"\"").description))
    #expect(Audience.user("zoë").text == "username:zoë", "as it was stored before")
  }

  /// A year has four digits. A moment that cannot be written is not read either; a clock or sum outside the range is
  /// written as the nearest moment inside it.
  @Test(arguments: ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"])
  func momentsOutsideFourDigitYearsAreRejected(text: String) {
    #expect(UnixTime(text) == nil)
  }

  @Test(arguments: [
    (Int64.min, "0000-01-01T00:00:00.000Z"), (-62_167_219_200_001, "0000-01-01T00:00:00.000Z"),
    (253_402_300_799_998, "9999-12-31T23:59:59.998Z"), (253_402_300_800_000, "9999-12-31T23:59:59.999Z"),
    (Int64.max, "9999-12-31T23:59:59.999Z"),
  ])
  func everyMomentCanBeWritten(milliseconds: Int64, text: String) {
    #expect(UnixTime(milliseconds: milliseconds).description == text)
    #expect(UnixTime(text)?.description == text)
  }

  @Test func httpDatesAreFormatted() {
    #expect(UnixTime(milliseconds: 784_111_777_999).httpDate == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(UnixTime(milliseconds: -1).httpDate == "Wed, 31 Dec 1969 23:59:59 GMT")
    #expect(UnixTime(milliseconds: 1_795_248_000_000).httpDate == "Sat, 21 Nov 2026 08:00:00 GMT")
  }

  @Test func pushIDIsDerivedFromSendAndDevice() {
    let (send, device) = (SendID.random(), RegistrationID.random())
    #expect(PushID(send: send, registration: device) == PushID(send: send, registration: device))
    #expect(PushID(send: send, registration: device) != PushID(send: send, registration: .random()))
    #expect(PushID(send: .random(), registration: device) != PushID(send: send, registration: device))
    #expect(PushID(send: send, registration: device).description.dropFirst(14).first == "8")
  }

  @Test(arguments: [
    ("1970-01-01T00:00:00.000Z", Int64(0)), ("2026-11-21T08:00:00.123Z", 1_795_248_000_123),
    ("2000-02-29T23:59:59.999Z", 951_868_799_999),
    ("1969-12-31T23:59:59.999Z", -1), ("2100-03-01T00:00:00.000Z", 4_107_542_400_000),
  ])
  func timeIsWrittenAndRead(text: String, milliseconds: Int64) {
    #expect(UnixTime(milliseconds: milliseconds).description == text)
    #expect(UnixTime(text)?.milliseconds == milliseconds)
  }

  @Test func timeIsReadInEveryFormOfRFC3339() {
    #expect(UnixTime("2026-11-21T09:30:00+01:30")?.milliseconds == 1_795_248_000_000)
    #expect(UnixTime("2026-11-21t08:00:00.1234567z")?.milliseconds == 1_795_248_000_123)
    for text in [
      "2026-02-29T00:00:00Z", "2026-11-21", "2026-11-21T24:00:00Z", "2026-11-21T08:00:00", "2026-11-21T08:00:00.Z", "x",
    ] {
      #expect(UnixTime(text) == nil)
    }
    #expect(UnixTime(milliseconds: -1).seconds == -1)
    #expect(UnixTime(milliseconds: .max) + .seconds(Int64.max) == UnixTime(milliseconds: .max))
  }

  @Test(arguments: [
    (Int64.max, Duration.milliseconds(500), Int64.max), (.min, .milliseconds(-500), .min),
    (0, .milliseconds(Int64.max) + .milliseconds(1), .max),
    (0, .zero - .milliseconds(Int64.max) - .milliseconds(2), .min),
    (.max, .milliseconds(-500), .max - 500),
  ])
  func sumsOfTimesSaturate(time: Int64, duration: Duration, sum: Int64) {
    #expect((UnixTime(milliseconds: time) + duration).milliseconds == sum)
  }

  @Test func tagsAndNamesAreValidated() {
    #expect(Tag.isValid("A-z_0@#.:-"))
    for tag in ["", "a b", "é", String(repeating: "x", count: 121)] { #expect(!Tag.isValid(tag)) }
    #expect(Tag.user(of: "username:bob") == "bob")
    #expect(Tag.user(of: "news") == nil)
    #expect(UserName.isValid("zoë müller"))
    for name in ["", "a:b", "a\nb", String(repeating: "x", count: 112)] { #expect(!UserName.isValid(name)) }
    #expect(HubName("Default") == nil)
    #expect(HubName("-x") == nil)
    #expect(Platform(name: "GcM") == .fcm)
    #expect(Platform(name: "pager") == nil)
    #expect(PlatformSet.all.platforms == Platform.allCases)
  }

  @Test(arguments: [
    ("https://cloud.notify.windows.com/?token=a%2bb", "cloud.notify.windows.com", "/?token=a%2bb"),
    ("HTTPS://DM3P.Notify.Windows.com:443/w/?token=x", "dm3p.notify.windows.com", "/w/?token=x"),
    ("https://notify.windows.com?token=x", "notify.windows.com", "/?token=x"),
  ])
  func channelURIsLeadToMicrosoft(uri: String, host: String, path: String) {
    #expect(ChannelURI(uri)?.host == host)
    #expect(ChannelURI(uri)?.pathAndQuery == path)
  }

  @Test(arguments: [
    "http://cloud.notify.windows.com/?token=x", "https://evilnotify.windows.com/",
    "https://notify.windows.com.evil.example/",
    "https://user@cloud.notify.windows.com/", "https://cloud.notify.windows.com:8443/",
    "https://127.0.0.1/?notify.windows.com",
    "https://evil.example/\\@cloud.notify.windows.com/", "https://cloud.notify.windows.com/#x",
    "https://evil.example#.notify.windows.com/", "https://.notify.windows.com/", "https://a..notify.windows.com/",
    "https://\(String(repeating: "a", count: 64)).notify.windows.com/",
    "https://cloud.notify.windows.com/ x", "https://cloud.notify.windows.com/?token=%2",
    "https://cloud.notify.windows.com/?token=%zz", "https://cloud.notify.windows.com/?token=%",
    "https://cloud.notify.windows.com/?token=\u{7F}", "https://cloud.notify.windows.com/?token=é",
  ])
  func channelURIsOfOtherHostsAreRejected(uri: String) {
    #expect(ChannelURI(uri) == nil)
    #expect(DeviceHandle.problem(with: uri, platform: .wns) != nil)
  }

  @Test func handlesAreValidatedByPlatform() {
    #expect(DeviceHandle.problem(with: String(repeating: "aF", count: 32), platform: .apns) == nil)
    for handle in ["", "abc", "zz", String(repeating: "aa", count: 201)] {
      #expect(DeviceHandle.problem(with: handle, platform: .apns) != nil)
    }
    #expect(DeviceHandle.normalized("AF", platform: .apns) == "af")
    #expect(DeviceHandle.normalized("AF", platform: .fcm) == "AF")
    #expect(DeviceHandle.problem(with: "with space", platform: .fcm) != nil)
  }

  @Test func severalTagsAreSortedAndUnique() {
    #expect(Audience(anyOf: ["b", "a", "b", "a"]) == .tags(["a", "b"]))
    guard case .tags(let tags) = Audience(anyOf: ["username:ren\u{E9}", "username:rene\u{301}"]) else { return }
    #expect(tags.count == 2, "two users, though their names look the same")
  }

  @Test func oneUsersSendsShareAKey() {
    let (one, two) = (SendID.random(), SendID.random())
    let hub = HubName("app-2") ?? .default
    #expect(Audience.user("bob").recordKey(of: one, hub: .default) == Array("username:bob".utf8))
    #expect(Audience.user("bob").recordKey(of: one, hub: hub) == Array("app-2/username:bob".utf8))
    #expect(Audience.tag("username:bob").recordKey(of: two, hub: .default) == Array("username:bob".utf8))
    for audience in [Audience.tag("news"), .tags(["a", "b"]), .expression(.tag("a")), .everyone] {
      #expect(audience.recordKey(of: one, hub: .default) == Array(one.description.utf8))
      #expect(audience.isBroadcast)
    }
    for audience in [Audience.user("bob"), .tag("username:bob"), .registration(.random()), .device(.fcm, handle: "t")] {
      #expect(!audience.isBroadcast)
    }
  }
}
