import FanfareCore
import Foundation
import Support
import Testing

@testable import FrontEnd

/// Sends at a time of day of each device.
@Suite(.timeLimit(.minutes(2))) struct LocalTimeTests {
  @Test func momentIsThatOfTheZonesClocks() throws {
    for (text, zone, moment) in [
      ("2026-12-01T08:00:00", "UTC", "2026-12-01T08:00:00Z"),
      ("2026-12-01T08:00:00", "Europe/Vienna", "2026-12-01T07:00:00Z"),
      ("2026-07-01T08:00:00", "Europe/Vienna", "2026-07-01T06:00:00Z"),
      ("2026-07-01T08:00:00.5", "Asia/Kolkata", "2026-07-01T02:30:00.5Z"),
      ("2026-07-01T08:00:00", "America/Los_Angeles", "2026-07-01T15:00:00Z"),
      ("2026-12-01T08:00:00", "Pacific/Kiritimati", "2026-11-30T18:00:00Z"),
      // The hour that is skipped, and the one that occurs twice.
      ("2026-03-29T02:30:00", "Europe/Vienna", "2026-03-29T01:30:00Z"),
      ("2026-10-25T02:30:00", "Europe/Vienna", "2026-10-25T00:30:00Z"),
      ("2026-10-25T03:00:00", "Europe/Vienna", "2026-10-25T02:00:00Z"),
      ("2026-03-29T03:00:00", "Europe/Vienna", "2026-03-29T01:00:00Z"),
      ("2026-11-01T01:30:00", "America/New_York", "2026-11-01T05:30:00Z"),
      ("2026-03-08T02:30:00", "America/New_York", "2026-03-08T07:30:00Z"),
    ] {
      let time = LocalSendTime(inUTC: try #require(LocalSendTime.parse(text)), defaultZone: "UTC")
      #expect(time.instant(in: zone) == UnixTime(moment), "\(text) \(zone)")
    }
    for text in ["2026-12-01T08:00:00Z", "2026-12-01T08:00:00+01:00", "2026-12-01", "", "T", "2026-13-01T08:00:00"] {
      #expect(LocalSendTime.parse(text) == nil, "\(text)")
    }
  }

  @Test func zoneAndTagBelongTogether() {
    for (zone, tag) in [
      ("Europe/Vienna", "time-zone:Europe.Vienna"),
      ("America/Argentina/Buenos_Aires", "time-zone:America.Argentina.Buenos_Aires"),
      ("Etc/GMT+5", "time-zone:Etc.GMT#5"), ("America/Port-au-Prince", "time-zone:America.Port-au-Prince"),
      ("UTC", "time-zone:UTC"), ("GMT", "time-zone:GMT"), ("GMT+0", "time-zone:GMT#0"),
      ("NZ-CHAT", "time-zone:NZ-CHAT"),
    ] {
      #expect(TimeZoneName.isKnown(zone) && Tag.timeZone(zone) == tag && TimeZoneName.named(by: tag) == zone)
    }
    for name in [
      "Mars/Phobos", "PST", "CEST", "GMT+1", "UTC+1", "cet", "", "Europe/Vienna ", "/etc/localtime", "../UTC",
      "Europe/\0",
    ] {
      #expect(!TimeZoneName.isKnown(name), "\(name)")
    }
    for tag in ["time-zone:", "time-zone:Mars.Phobos", "news", "timezone"] {
      #expect(TimeZoneName.named(by: tag) == nil)
    }
  }

  /// The links of the database's file `backward`, and its zones of fixed rules; phones report `GMT`.
  @Test(
    arguments: [
      ("CET", 7200), ("CST6CDT", -18000), ("Cuba", -14400), ("EET", 10800), ("EST", -18000), ("EST5EDT", -14400),
      ("Egypt", nil), ("Eire", 3600), ("GB", 3600), ("GB-Eire", 3600), ("GMT", 0), ("GMT+0", 0), ("GMT-0", 0),
      ("GMT0", 0),
      ("Greenwich", 0), ("HST", -36000), ("Hongkong", 28800), ("Iceland", 0), ("Iran", nil), ("Israel", 10800),
      ("Jamaica", -18000), ("Japan", 32400), ("Kwajalein", 43200), ("Libya", 7200), ("MET", 7200), ("MST", -25200),
      ("MST7MDT", -21600), ("NZ", 43200), ("NZ-CHAT", 45900), ("Navajo", -21600), ("PRC", 28800), ("PST8PDT", -25200),
      ("Poland", 7200), ("Portugal", 3600), ("ROC", 28800), ("ROK", 32400), ("Singapore", 28800), ("Turkey", 10800),
      ("UCT", 0), ("UTC", 0), ("Universal", 0), ("W-SU", 10800), ("WET", 3600), ("Zulu", 0),
    ] as [(String, Int?)])
  func namesWithoutASlashAreZones(name: String, offset: Int?) throws {
    #expect(TimeZoneName.isKnown(name) && TimeZoneName.named(by: Tag.timeZone(name)) == name)
    #expect(TimeZoneName.all.contains(name))
    // In summer of the north.
    let noon = try #require(LocalSendTime.parse("2026-07-01T12:00:00"))
    let moment = LocalSendTime(inUTC: noon, defaultZone: "UTC").instant(in: name)
    // The rules of two states changed in recent years, and the system's data may be older.
    if let offset { #expect(moment == noon + .seconds(-offset)) }
  }

  private func put(_ app: Harness, _ id: Int, _ zone: String?) async throws {
    let member = zone.map { #","timeZone":"\#($0)""# } ?? ""
    let reply = try await app.request(
      .put, "/api/installations/phone-\(id)",
      body: #"{"platform":"fcm","handle":"token-\#(id)","tags":["news"]\#(member)}"#)
    #expect(reply.status == 200)
  }

  private func send(
    _ app: Harness, _ to: String = #"{"tag":"news"}"#, _ members: String = #","timeZone":"device""#,
    key: String? = nil
  ) async throws -> Reply {
    try await app.request(
      .post, "/api/sends", as: "opal",
      body: #"{"to":\#(to),"message":{"body":"b"},"sendAt":"2026-12-01T08:00:00"\#(members)}"#,
      headers: key.map { [("Idempotency-Key", $0)] } ?? [])
  }

  private static let zones = ["Europe/Vienna", "Europe/Vienna", "Europe/Zurich", "Asia/Tokyo", nil, nil]

  @Test func everyDeviceIsInExactlyOnePart() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for (id, zone) in Self.zones.enumerated() { try await put(app, id, zone) }
      for (to, count) in [
        (#"{"tag":"news"}"#, 6), (#"{"everyone":true}"#, 6), (#"{"user":"alice"}"#, 6), (#"{"tags":["news","x"]}"#, 6),
        (#"{"expression":"news && !muted"}"#, 6), (#"{"expression":"x || news"}"#, 6), (#"{"tag":"x"}"#, 0),
      ] {
        let reply = try await send(app, to)
        #expect(reply.status == 202, "\(reply.text)")
        #expect(try reply.json["state"] == "scheduled")
        let parts = try reply.json["parts"]?.elements ?? []
        #expect(
          parts.map { $0["sendAt"] } == [
            "2026-11-30T23:00:00.000Z", "2026-12-01T07:00:00.000Z", "2026-12-01T08:00:00.000Z",
          ])
        #expect(parts.map { $0["timeZones"] } == [["Asia/Tokyo"], ["Europe/Vienna", "Europe/Zurich"], ["UTC"]])
        #expect(parts.map { $0["isRest"] } == [nil, nil, true])
        var reached: [RegistrationID] = []
        for part in parts {
          let id = try #require(part["id"]?.text.flatMap { SendID($0) })
          let held = try #require(try await app.registry.scheduled(id, hub: .default))
          #expect(JSON.string("\(held.due)") == part["sendAt"] && held.send.sender == "opal")
          // As a worker reads it.
          let read = try SendRequest.decode(held.send.encoded()[...], recordTime: held.due)
          #expect(read == held.send)
          reached += try await app.reached(read.audience)
        }
        #expect(reached.count == count && Set(reached).count == count, "\(to)")
      }
      #expect(sink.isEmpty)
    }
  }

  @Test func partIsAnOrdinaryScheduledSend() async throws {
    try await Harness.run { app in
      try await put(app, 1, "Asia/Tokyo")
      let parts = try await send(app).json["parts"]?.elements ?? []
      let id = try #require(parts.first?["id"]?.text)
      #expect(try await app.request(.get, "/api/sends/\(id)", as: "opal").json["state"] == "scheduled")
      let list = try await app.request(.get, "/api/sends?state=scheduled", as: "opal").json["sends"]?.elements
      #expect(list?.count == 2)
      #expect(try await app.request(.post, "/api/sends/\(id)/cancel", as: "opal").status == 200)
    }
  }

  @Test func devicesWithoutAZoneGetItAtTheDefaultOne() async throws {
    try await Harness.run { app in
      let reply = try await send(app, #"{"everyone":true}"#, #","timeZone":"device","defaultTimeZone":"Asia/Tokyo""#)
      let parts = try reply.json["parts"]?.elements ?? []
      #expect(parts.count == 1 && parts[0]["sendAt"] == "2026-11-30T23:00:00.000Z")
      #expect(parts[0]["timeZones"] == ["Asia/Tokyo"])
    }
  }

  /// More zones than a caller's expression may have tags.
  @Test func worldwideAudienceHasAPartForEachMoment() async throws {
    let zones = TimeZone.knownTimeZoneIdentifiers.filter(TimeZoneName.isKnown)
    #expect(zones.count > 300)
    let time = LocalSendTime(inUTC: try #require(LocalSendTime.parse("2026-12-01T08:00:00")), defaultZone: "UTC")
    let parts = LocalPart.all(of: time, zones: zones)
    #expect((30...60).contains(parts.count) && Set(parts.map(\.line)).count == parts.count)
    for part in parts {
      let send = SendRequest(
        id: .random(), acceptedAt: part.instant, audience: part.audience(within: .everyone, all: zones),
        content: Content(message: Message(body: "b")))
      #expect(try SendRequest.decode(send.encoded()[...], recordTime: part.instant) == send)
    }
  }

  @Test func repetitionHasTheSameAnswer() async throws {
    try await Harness.run { app in
      for (id, zone) in Self.zones.enumerated() { try await put(app, id, zone) }
      let first = try await send(app, key: "a")
      // A zone that comes into use later changes nothing.
      try await put(app, 9, "America/New_York")
      app.clock.advance(by: .seconds(3600))
      let second = try await send(app, key: "a")
      #expect(first.status == 202 && second.status == 202)
      #expect(try first.json == second.json)
      try await send(app, #"{"tag":"x"}"#, key: "a").expectProblem(409, "keyReused")
      #expect(try await send(app, key: "b").json["parts"]?.elements.count == 4)
    }
  }

  /// As after a crash between the schedule and the claim.
  @Test func repetitionOfAnUnsettledRequestAddsNoPart() async throws {
    let temporary = try TemporaryRegistry()
    let claims = IdempotencyTests.ForgetfulClaims(over: temporary.registry)
    try await Harness.run({ $0.claims = claims }) { app in
      try await put(app, 1, "Asia/Tokyo")
      claims.forgetOne()
      #expect(try await send(app, key: "a").status == 503)
      try await put(app, 9, "America/New_York")
      for _ in 1...2 {
        let parts = try await send(app, key: "a").json["parts"]?.elements ?? []
        #expect(parts.map { $0["timeZones"] } == [["Asia/Tokyo"], ["UTC"]])
      }
      let list = try await app.request(.get, "/api/sends?state=scheduled", as: "opal").json["sends"]?.elements
      #expect(list?.count == 2)
    }
  }

  /// Otherwise one app could name so many zones that others' are left out.
  @Test func onlyZonesOfProfilesAreInUse() async throws {
    try await Harness.run { app in
      try await put(app, 1, "Asia/Tokyo")
      let tags = (["Europe.Vienna"] + (1..<60).map { "#\($0)" }).map { #""time-zone:\#($0)""# }
      let reply = try await app.request(
        .put, "/api/installations/phone-2",
        body: #"{"platform":"fcm","handle":"token-2","tags":[\#(tags.joined(separator: ","))]}"#)
      #expect(try reply.json["tags"] == ["installation:phone-2", "username:alice"])
      let parts = try await send(app).json["parts"]?.elements ?? []
      #expect(parts.map { $0["timeZones"] } == [["Asia/Tokyo"], ["UTC"]])
    }
  }

  @Test func errorNamesTheMember() async throws {
    try await Harness.run { app in
      for (to, members, name) in [
        (#"{"tag":"news"}"#, "", "sendAt must have an offset"),
        (#"{"tag":"news"}"#, #","timeZone":"Europe/Vienna""#, "timeZone must be \"device\""),
        (#"{"tag":"news"}"#, #","defaultTimeZone":"UTC""#, "sendAt must have an offset"),
        (#"{"tag":"news"}"#, #","timeZone":"device","defaultTimeZone":"Mars/Phobos""#, "defaultTimeZone must be"),
        (#"{"device":{"platform":"fcm","handle":"t"}}"#, #","timeZone":"device""#, "timeZone is not possible"),
        (#"{"registration":"018f4c1e-7c3a-7000-8000-000000000002"}"#, #","timeZone":"device""#, "timeZone is not"),
      ] { try await send(app, to, members).expectProblem(400, "invalidField", naming: name) }
      for body in [
        #"{"to":{"tag":"a"},"message":{"body":"b"},"timeZone":"device"}"#,
        #"{"to":{"tag":"a"},"message":{"body":"b"},"sendAt":"2026-12-01T08:00:00Z","timeZone":"device"}"#,
      ] {
        try await app.request(.post, "/api/sends", as: "opal", body: body).expectProblem(
          400, "invalidField", naming: "timeZone needs a sendAt without an offset")
      }
      let line = #"{"to":{"tag":"a"},"message":{"body":"b"},"sendAt":"2026-12-01T08:00:00","timeZone":"device"}"#
      let reply = try await app.request(
        .post, "/api/sends/batch", as: "opal", body: line, type: "application/x-ndjson")
      #expect(try reply.json["error"]?["detail"]?.text?.contains("timeZone") == true)
    }
  }
}
