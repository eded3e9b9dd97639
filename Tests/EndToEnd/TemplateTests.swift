import FanfareCore
import Foundation
import Testing

@testable import fanfare_dev

/// A template of the hub in two languages, and a send in the devices' local time, in a running deployment.
@Suite(.timeLimit(.minutes(3))) struct TemplateTests {
  /// Devices on three clocks that are never set: Tokyo's is ahead of Phoenix's, Honolulu's behind it.
  private static let devices = [
    (name: "berta", platform: "apns", handle: String(repeating: "1a", count: 32), locale: "de-AT", zone: "Asia/Tokyo"),
    (name: "carol", platform: "fcm", handle: "carols-token", locale: "en-GB", zone: "America/Phoenix"),
    (name: "kai", platform: "fcm", handle: "kais-token", locale: "haw", zone: "Pacific/Honolulu"),
  ]

  private static let goal = """
    {"defaultLocale":"en","variants":{
      "en":{"message":{"title":"Goal!","body":"{$(team) + ' scores'}"}},
      "de":{"message":{"title":"Tor!","body":"{$(team) + ' trifft'}"}}}}
    """

  @Test func eachDeviceReadsItsLanguageAtItsTime() async throws {
    try await Deployment.with { deployment in
      let api = try await deployment.startFrontEnd()
      _ = try await deployment.ready(try deployment.startWorker())
      for device in Self.devices {
        let answer = try await api.call(
          "PUT", "/api/installations/\(device.name)", user: device.name,
          body: """
            {"platform":"\(device.platform)","handle":"\(device.handle)","locale":"\(device.locale)",\
            "timeZone":"\(device.zone)"}
            """)
        #expect(answer.status < 300, "\(answer.text)")
      }
      try await Self.storeTemplate(deployment, api)
      try await Self.sendTemplate(deployment, api)
      try await Self.sendInLocalTime(deployment, api)
    }
  }

  /// Runs `fanfare templates`. Returns what it prints, or its error.
  private static func command(
    _ arguments: [String], as user: String = "operator", _ deployment: Deployment, _ api: Caller
  ) async throws -> (status: Int32, text: String) {
    let (status, output, errors) = try await deployment.run(
      ["templates"] + arguments, ["FANFARE_URL": api.base, "FANFARE_USER": user, "FANFARE_PASSWORD": user])
    return (status, status == 0 ? output : errors)
  }

  /// The commands, as an operator uses them.
  private static func storeTemplate(_ deployment: Deployment, _ api: Caller) async throws {
    func run(_ arguments: [String], as user: String = "operator") async throws -> (status: Int32, text: String) {
      try await command(arguments, as: user, deployment, api)
    }
    let file = deployment.directory.appending(path: "goal.json")
    func store(_ text: String) async throws -> (status: Int32, text: String) {
      try Data(text.utf8).write(to: file)
      return try await run(["put", "goal", file.path])
    }
    #expect(try await store(goal.replacing("trifft", with: "schießt")) == (0, "goal: version 1\n"))
    #expect(try await store(goal) == (0, "goal: version 2\n"))
    // The same texts again are no change, and neither is what `show` prints.
    #expect(try await store(goal) == (0, "goal: version 2\n"))
    let shown = try await run(["show", "goal"])
    #expect(shown.status == 0 && shown.text.contains("trifft"), "\(shown)")
    #expect(try await store(shown.text) == (0, "goal: version 2\n"))
    #expect(try await run(["show", "goal", "--version", "1"]).text.contains("schießt"))
    let list = try await run(["list"])
    #expect(list.text.contains("goal") && list.text.contains("de en"), "\(list)")
    #expect(try await run(["list", "--json"]).text.contains(#""version":2"#))
    let preview = try await run(["preview", "goal", "--locale", "de-AT", "--property", "team=Rapid"])
    #expect(preview.text.contains("Rapid trifft") && !preview.text.contains("scores"), "\(preview)")

    let wrong = try await store(goal.replacing("$(team)", with: "$(team"))
    #expect(wrong.status == 1 && wrong.text.contains("variants.") && wrong.text.contains("character"), "\(wrong)")
    try Data("[]".utf8).write(to: file)
    #expect(try await run(["put", "goal", file.path]).text.contains("must be a JSON object"))
    let refused = try await run(["list"], as: "berta")
    #expect(refused.status == 1 && refused.text.contains("read:all"), "\(refused)")
    #expect(try await run(["show", "nothing"]).status == 1)
  }

  private static func sendTemplate(_ deployment: Deployment, _ api: Caller) async throws {
    let answer = try await api.call(
      "POST", "/api/sends", user: "alice",
      body: #"{"to":{"everyone":true},"template":{"name":"goal","properties":{"team":"Rapid \"W\""}}}"#)
    #expect(answer.status == 202, "\(answer.text)")
    let report = try await deployment.settled(
      try #require(try answer.json["id"] as? String), as: "alice", at: api)
    #expect(report["state"] as? String == "settled", "\(report)")
    for (device, text) in zip(devices, ["trifft", "scores", "scores"]) {
      let arrived = try await arrivals(at: device, deployment)
      #expect(arrived.count == 1 && arrived[0].payload.contains(#"Rapid \"W\" \#(text)"#), "\(device.name): \(arrived)")
    }
    #expect(try await command(["remove", "goal"], deployment, api) == (0, "goal: removed\n"))
    #expect(try await command(["list"], deployment, api).text.contains("goal") == false)
  }

  /// At the time that Phoenix shows now: long past in Tokyo and in UTC, and hours away in Honolulu.
  private static func sendInLocalTime(_ deployment: Deployment, _ api: Caller) async throws {
    let due = UnixTime(milliseconds: (SystemWallClock().now().seconds + 2) * 1000)
    // Seven hours behind UTC, all the year.
    let local = "\(due + .seconds(-7 * 3600))".prefix(19)
    let answer = try await api.call(
      "POST", "/api/sends", user: "alice",
      body: """
        {"to":{"everyone":true},"message":{"body":"Good morning"},"sendAt":"\(local)","timeZone":"device"}
        """)
    #expect(answer.status == 202, "\(answer.text)")
    let parts = try #require(try answer.json["parts"] as? [[String: Any]])
    let zones = parts.map { $0["timeZones"] as? [String] ?? [] }
    #expect(zones == [["Asia/Tokyo"], ["America/Phoenix"], ["Pacific/Honolulu"], ["UTC"]], "\(parts)")
    #expect(parts.map { $0["isRest"] as? Bool ?? false } == [false, false, false, true])
    let ids = try parts.map { try #require($0["id"] as? String) }
    for number in [0, 1, 3] {
      try await eventually("the part \(zones[number]) to be sent") {
        let state = try await api.get("/api/sends/\(ids[number])", user: "alice").json["state"] as? String
        return state == (number == 3 ? "noTarget" : "settled")
      }
    }
    for device in devices.prefix(2) {
      let arrived = try await arrivals(at: device, deployment)
      #expect(arrived.count == 2 && arrived[1].payload.contains("Good morning"), "\(device.name): \(arrived)")
    }
    let time = try #require(try await arrivals(at: devices[1], deployment).last?.time)
    #expect(time >= due, "before its time")
    // Honolulu's part waits, and is followed and cancelled like any scheduled send.
    let waiting = try await api.get("/api/sends/\(ids[2])", user: "alice").json
    #expect(waiting["state"] as? String == "scheduled", "\(waiting)")
    #expect(try await arrivals(at: devices[2], deployment).count == 1)
    #expect(try await api.call("POST", "/api/sends/\(ids[2])/cancel", user: "alice", body: "").status == 200)
  }

  /// What arrived at a device, oldest first.
  private static func arrivals(
    at device: (name: String, platform: String, handle: String, locale: String, zone: String), _ deployment: Deployment
  ) async throws -> [(time: UnixTime, payload: String)] {
    let answer = try await deployment.simulator.get("/devices/\(device.platform)/\(device.handle)")
    guard answer.status == 200 else { return [] }
    return try (try answer.json["notifications"] as? [[String: Any]] ?? []).map { notification in
      let payload = try JSONSerialization.data(
        withJSONObject: try #require(notification["payload"]), options: [.withoutEscapingSlashes])
      let time = try #require((notification["time"] as? String).flatMap { UnixTime($0) })
      return (time, String(decoding: payload, as: UTF8.self))
    }
  }
}
