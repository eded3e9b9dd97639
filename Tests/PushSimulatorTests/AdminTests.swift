import AsyncHTTPClient
import FanfareCore
import Foundation
import HTTP2
import NIOCore
import PushSimulator
import Testing

@Suite(.timeLimit(.minutes(2)))
struct AdminTests {
  @Test func faultsAreOrderedListedAndRemoved() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      let made = try await fixture.admin(
        "POST", "/faults",
        body: #"{"service":"apns","action":"answer","status":429,"retryAfter":7,"handlePrefix":"AB"}"#)
      #expect(made.status == 201)
      #expect(made.headers["location"] == "/faults/1")
      #expect(made.body.contains(#""handlePrefix":"ab""#))
      let hit = try await APNsTests.push(fixture, token: token)
      #expect(hit.status == 429)
      #expect(hit.headers["retry-after"] == "7")
      #expect(hit.body == Array(#"{"reason":"TooManyRequests"}"#.utf8))
      #expect(try await APNsTests.push(fixture, String(repeating: "cd", count: 32), token: token).status == 200)
      let listed = try await fixture.admin("GET", "/faults")
      #expect(listed.body.contains(#""hits":1"#))
      #expect(try await fixture.admin("DELETE", "/faults/1").status == 204)
      #expect(try await fixture.admin("DELETE", "/faults/1").status == 404)
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      #expect(try await fixture.admin("GET", "/faults").body == "[]")
    }
  }

  @Test(arguments: [
    #"{"service":"icq","action":"drop"}"#, #"{"service":"apns","action":"sulk"}"#,
    #"{"service":"apns","action":"answer"}"#,
    #"{"service":"apns","action":"answer","status":999}"#, #"{"service":"apns","action":"latency"}"#,
    #"{"service":"wns","action":"refuse-handshake"}"#, #"{"service":"apns","action":"drop","count":0}"#,
    #"{"service":"apns","action":"drop","share":2}"#, "nonsense",
    #"{"service":"apns","action":"refuse-handshake","handlePrefix":"ab"}"#,
    #"{"service":"google-token","action":"silence","handlePrefix":"ya29"}"#,
    #"{"service":"microsoft-token","action":"silence","handlePrefix":""}"#,
  ])
  func wrongFaultsAreRefused(_ body: String) async throws {
    try await SimulatorFixture.run { fixture in
      let answer = try await fixture.admin("POST", "/faults", body: body)
      #expect(answer.status == 400)
      #expect(fixture.simulator.faults.list.isEmpty)
    }
  }

  /// A prefix may be in the platform's own form.
  @Test func faultMayNameAChannelByItsURI() async throws {
    try await SimulatorFixture.run { fixture in
      let uri = "https://cloud.notify.windows.com/?token=chan%2fnel"
      let order = #"{"service":"wns","action":"answer","status":503,"handlePrefix":"\#(uri)"}"#
      #expect(try await fixture.admin("POST", "/faults", body: order).status == 201)
      let token = try await WNSTests.accessToken(fixture)
      #expect(try await WNSTests.push(fixture, token: token).status == 503)
      #expect(try await WNSTests.push(fixture, token: token, channel: "another").status == 200)
    }
  }

  @Test func faultMayBeLimitedToFewRequests() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      fixture.simulator.faults.add(Fault(.apns, .answer(status: 503), count: 2))
      fixture.simulator.faults.add(Fault(.apns, .answer(status: 500), share: 0.5))
      var statuses: [Int] = []
      for _ in 0..<6 { statuses.append(try await APNsTests.push(fixture, token: token).status) }
      #expect(statuses == [503, 503, 200, 500, 200, 500])
    }
  }

  @Test func goAwayIsSentOnDemand() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      fixture.simulator.faults.add(Fault(.apns, .goAway, count: 1))
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      let reason = try await fixture.apnsEvents.first { event -> [UInt8]? in
        if case .goAway(_, .noError, _, let data) = event { data } else { nil }
      }
      #expect(String(decoding: reason, as: UTF8.self) == #"{"reason":"Shutdown"}"#)
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      #expect(fixture.simulator.store.counts().accepted == 2)
    }
  }

  @Test func handshakesAreRefused() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      let order = #"{"service":"apns","action":"refuse-handshake","count":1}"#
      #expect(try await fixture.admin("POST", "/faults", body: order).status == 201)
      // An open connection is not affected; after this there is none.
      fixture.simulator.faults.add(Fault(.apns, .goAway, count: 1))
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      let failure = try await fixture.apnsEvents.first { event -> HTTP2ConnectionError? in
        if case .failed(_, let error, _) = event { error } else { nil }
      }
      #expect("\(failure)".contains("HANDSHAKE"))
      // The fault is used up, so the next connection is accepted.
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
    }
  }

  @Test func aKeyIsReplaced() async throws {
    try await SimulatorFixture.run { fixture in
      let old = try await Signing.providerToken(fixture.credentials.apns)
      #expect(try await APNsTests.push(fixture, token: old).status == 200)
      let answer = try await fixture.admin("POST", "/keys/replace?service=apns")
      #expect(answer.status == 200)
      let files = try JSONDecoder().decode([String: String].self, from: Data(answer.body.utf8))
      #expect(Set(files.keys) == ["apns.p8", "apns.json", "apns-key-id"])
      let refused = try await APNsTests.push(fixture, token: old)
      #expect(refused.status == 403)
      #expect(refused.body == Array(#"{"reason":"InvalidProviderToken"}"#.utf8))
      #expect(try await fixture.admin("POST", "/keys/replace?service=microsoft-token").status == 400)
      // A connection belongs to the key of its first push.
      let app = try SimulatorCredentials.APNsApp { Data(files[$0, default: ""].utf8) }
      let new = try await Signing.providerToken(app)
      let unrelated = try await APNsTests.push(fixture, token: new)
      #expect(unrelated.status == 403)
      #expect(unrelated.body == Array(#"{"reason":"UnrelatedKeyIdInToken"}"#.utf8))
      fixture.apns.renewConnections()
      #expect(try await APNsTests.push(fixture, token: new).status == 200)
    }
  }

  @Test func connectionsAreDropped() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      fixture.simulator.faults.add(Fault(.apns, .dropConnection, count: 1))
      fixture.simulator.faults.add(Fault(.apns, .acceptAndDrop, count: 1))
      for _ in 0..<2 {
        let error = await #expect(throws: HTTP2RequestError.self) { try await APNsTests.push(fixture, token: token) }
        #expect(error?.wasPossiblyProcessed == true)
      }
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      #expect(fixture.simulator.store.received(.apns, APNsTests.device) == 2)
      let counts = fixture.simulator.store.counts()[.apns]
      #expect(counts.accepted == 2)
      #expect(counts.answers == ["connection dropped": 2, "200": 1])
    }
  }

  @Test func streamsAreResetAndLimited() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      fixture.simulator.faults.add(Fault(.apns, .reset(code: 2), count: 1))
      let error = await #expect(throws: HTTP2RequestError.self) { try await APNsTests.push(fixture, token: token) }
      #expect(error?.code == .streamReset(.internalError))
      fixture.simulator.faults.add(Fault(.apns, .streamLimit(3), count: 1))
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      let limit = try await fixture.apnsEvents.first { event -> Int? in
        if case .streamLimitChanged(_, let limit) = event, limit != 1000 { limit } else { nil }
      }
      #expect(limit == 3)
    }
  }

  @Test func latencyIsAddedOnDemand() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      #expect(
        try await fixture.admin("POST", "/faults", body: #"{"service":"apns","action":"latency","milliseconds":50}"#)
          .status
          == 201)
      let clock = ContinuousClock()
      let start = clock.now
      #expect(try await APNsTests.push(fixture, token: token).status == 200)
      #expect(clock.now - start >= .milliseconds(50))
    }
  }

  @Test func tokenEndpointsFailOnDemand() async throws {
    try await SimulatorFixture.run { fixture in
      fixture.simulator.faults.add(Fault(.googleToken, .answer(status: 503, retryAfter: 3), count: 1))
      fixture.simulator.faults.add(Fault(.microsoftToken, .answer(status: 401), count: 1))
      let assertion = try await Signing.assertion(fixture.credentials.google)
      let google = try await FCMTests.exchange(fixture, assertion: assertion)
      #expect(google.status == 503)
      #expect(google.headers["retry-after"] == "3")
      let form = WNSTests.liveForm(fixture.credentials.windows)
      let microsoft = try await WNSTests.token(fixture, url: fixture.endpoints.liveTokenURL, form: form)
      #expect(microsoft.status == 401)
      #expect(try FCMTests.member("error", of: microsoft.body) == "invalid_client")
      #expect(try await FCMTests.exchange(fixture, assertion: assertion).status == 200)
    }
  }

  @Test func devicesArePagedAndReset() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      for device in ["a1", "b2", "c3"] {
        #expect(try await APNsTests.push(fixture, device, token: token).status == 200)
      }
      let first = try await fixture.admin("GET", "/devices?limit=2")
      let one = #"{"platform":"apns","handle":"a1","received":1}"#
      let two = #"{"platform":"apns","handle":"b2","received":1}"#
      #expect(first.body == #"{"devices":[\#(one),\#(two)],"next":"apns:b2"}"#)
      let second = try await fixture.admin("GET", "/devices?limit=2&after=apns:b2&platform=apns")
      #expect(second.body == #"{"devices":[{"platform":"apns","handle":"c3","received":1}]}"#)
      #expect(try await fixture.admin("GET", "/devices?limit=0").status == 400)
      #expect(try await fixture.admin("GET", "/devices?platform=icq").status == 400)
      #expect(try await fixture.admin("GET", "/devices/apns/ffff").status == 404)
      #expect(try await fixture.admin("DELETE", "/devices/apns/a1").status == 204)
      #expect(try await fixture.admin("GET", "/devices/apns/a1").status == 404)
      let counts = try await fixture.admin("GET", "/counts")
      #expect(
        counts.body.hasPrefix(
          #"{"accepted":3,"duplicates":0,"devices":2,"services":{"apns":{"accepted":3,"duplicates":0,"answers":{"200":3}}"#
        ))
      #expect(try await fixture.admin("DELETE", "/devices").status == 204)
      #expect(fixture.simulator.store.counts().accepted == 0)
      #expect(try await fixture.admin("GET", "/devices").body == #"{"devices":[]}"#)
    }
  }

  @Test func arrivalsAreStreamed() async throws {
    try await SimulatorFixture.run { fixture in
      let token = try await Signing.providerToken(fixture.credentials.apns)
      let observed = fixture.simulator.store.events()
      let response = try await fixture.http.execute(
        HTTPClientRequest(url: fixture.endpoints.adminURL + "/events?platform=apns"), timeout: .seconds(30))
      var iterator = response.body.makeAsyncIterator()
      let opening = try await iterator.next()
      #expect(opening.map { String(buffer: $0) } == ": watching\n\n")
      #expect(try await APNsTests.push(fixture, token: token, body: "{\n\"aps\":{}}").status == 200)
      let event = try await iterator.next().map { String(buffer: $0) } ?? ""
      #expect(event.hasPrefix("event: notification\ndata: {\"platform\":\"apns\""))
      #expect(event.hasSuffix("\"payload\":{ \"aps\":{}}}\n\n"))
      let notification = await observed.first { _ in true }
      #expect(notification?.handle == APNsTests.device)
    }
  }

  @Test func endpointsAndPrefixesAreDescribed() async throws {
    try await SimulatorFixture.run { fixture in
      let endpoints = try await fixture.admin("GET", "/endpoints")
      #expect(endpoints.body.contains(#""googleToken":"\#(fixture.endpoints.googleTokenURL)""#))
      #expect(try await fixture.admin("GET", "/prefixes").body.contains(#""prefix":"dead-""#))
      #expect(try await fixture.admin("GET", "/healthz").status == 200)
    }
  }
}
