import FanfareCore
import Foundation
import RDKafka
import Support
import Testing

@Suite(.timeLimit(.minutes(2))) struct SendTests {
  private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  @Test func recordHasAllMembersOfTheRequest() async throws {
    try await Harness.runWithKafka { app, kafka, topics in
      let whole = try await app.request(
        .post, "/api/sends",
        body: """
          {"to":{"user":"bob"},"message":{"title":"T \\"1\\"","body":"<b>\\n👾","data":{"k":"v","é":""},"badge":3,"sound":"default"},
           "native":{"apns":{"aps":{"alert":"x"},"n":[1,2.50,null]},"gcm":{"data":{"a":"b"}},"wns":"<toast/>"},
           "platforms":["apns","GCM"],"ttl":3600,"priority":"normal","collapseKey":"score","maxPerSecond":500}
          """, headers: [("traceparent", Self.traceparent)])
      #expect(whole.status == 202)
      let id = try whole.sendID()
      #expect(whole["Location"] == "/api/sends/\(id)")
      #expect(try whole.json == ["id": .string("\(id)"), "state": "accepted"])

      let registration = RegistrationID.random()
      var others: [SendID: (key: String?, audience: Audience)] = [:]
      for (to, key, audience) in [
        (#"{"tag":"news"}"#, nil, Audience.tag("news")),
        (#"{"tag":"username:bob"}"#, "username:bob", .tag("username:bob")),
        (#"{"registration":"\#(registration)"}"#, nil, .registration(registration)),
        (#"{"device":{"platform":"apns","handle":"AB01"}}"#, nil, .device(.apns, handle: "ab01")),
        (#"{"tags":["b","a","b"]}"#, nil, .tags(["a", "b"])),
        (
          #"{"expression":"a && !(b || c)"}"#, nil, .expression(.all([.tag("a"), .not(.any([.tag("b"), .tag("c")]))]))
        ),
        (#"{"everyone":true}"#, nil, .everyone),
      ] as [(String, String?, Audience)] {
        let reply = try await app.request(.post, "/api/sends", body: #"{"to":\#(to),"message":{"body":"b"}}"#)
        #expect(reply.status == 202)
        others[try reply.sendID()] = (key, audience)
      }

      for stored in try await kafka.sends(in: topics, count: 8) {
        let send = stored.send
        #expect(send.sender == "alice" && send.hub == .default && send.acceptedAt == app.clock.now())
        #expect(stored.headers == [RecordHeader(name: "content-type", text: "application/cloudevents+json")])
        if let (key, audience) = others.removeValue(forKey: send.id) {
          #expect(stored.key == key ?? "\(send.id)")
          #expect(send.audience == audience)
          #expect(send.content.message == Message(body: "b"))
          #expect(send.platforms == .all && send.priority == .high && send.timeToLive == nil)
          #expect(send.traceparent == nil && send.collapseKey == nil)
          continue
        }
        #expect(send.id == id && stored.key == "username:bob")
        #expect(send.audience == .user("bob"))
        #expect(
          send.content.message
            == Message(title: "T \"1\"", body: "<b>\n👾", data: ["k": "v", "é": ""], badge: 3, sound: "default"))
        #expect(send.content.apns == Array(#"{"aps":{"alert":"x"},"n":[1,2.50,null]}"#.utf8), "byte for byte")
        #expect(send.content.fcm == Array(#"{"data":{"a":"b"}}"#.utf8))
        #expect(send.content.wns == "<toast/>")
        #expect(send.platforms == [PlatformSet(.apns), PlatformSet(.fcm)])
        #expect(send.timeToLive == 3600 && send.priority == .normal && send.collapseKey == "score")
        #expect(send.maximumPerSecond == 500)
        #expect(send.traceparent == Self.traceparent)
      }
      #expect(others.isEmpty)
    }
  }

  /// The corpus has a body for each plain mistake; these are the rare ones.
  @Test func invalidBodyIsRefusedNamingTheMember() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      let to = #""to":{"user":"bob"}"#
      let message = #""message":{"body":"b"}"#
      for (body, field) in [
        (#"{"to":{"user":"a:b"},\#(message)}"#, "to.user"), (#"{"to":{"user":"a\u0000"},\#(message)}"#, "to.user"),
        (#"{"to":{"user":"a","user":"b"},\#(message)}"#, "to"), (#"{"to":{"all":true},\#(message)}"#, "to.all"),
        (#"{"to":{"tags":["a","b c"]},\#(message)}"#, "to.tags[1]"),
        (#"{"to":{"expression":"a &&"},\#(message)}"#, "to.expression must have a tag, ! or ( at character 5"),
        (#"{"to":{"expression":"é"},\#(message)}"#, "to.expression must have a tag, ! or ( at character 1"),
        (#"{"to":{"device":{"platform":"mpns","handle":"aa"}},\#(message)}"#, "to.device.platform"),
        (#"{"to":{"device":{"platform":"wns","handle":"https://example.com/"}},\#(message)}"#, "to.device"),
        (#"{"to":{"device":{"platform":"apns","handle":"aa","x":1}},\#(message)}"#, "to.device.x"),
        (#"{"to":{"device":{"platform":"apns","handle":"aa","handle":"bb"}},\#(message)}"#, "to.device.handle"),
        (#"{\#(to),\#(message),"ttl":2419201}"#, "ttl"), (#"{\#(to),\#(message),"ttl":1.5}"#, "ttl"),
        (#"{\#(to),\#(message),"ttl":99999999999999999999}"#, "ttl"),
        (#"{\#(to),\#(message),"priority":null}"#, "priority"),
        (#"{\#(to),"message":"b"}"#, "message"), (#"{\#(to),"native":{"wns":""}}"#, "native.wns"),
        (
          #"{\#(to),"native":{"apns":\#(String(repeating: "{\"a\":", count: 40))1\#(String(repeating: "}", count: 40))}}"#,
          "native.apns"
        ),
        (#"{\#(to),\#(message),"TTL":1}"#, "TTL"), (#"{\#(to),\#(message),"":1}"#, "\"\""),
        (#"{\#(to),\#(message),"<script>\u0000\n":1}"#, "<script>"),
        // Repeated members below the first level, also with escapes.
        (#"{\#(to),\#(message),"ttl":1,"\u0074tl":2}"#, "must be given once"),
        (#"{\#(to),"message":{"body":"a","body":"b"}}"#, "message.body"),
        (#"{\#(to),"message":{"body":"a","data":{"k":"1","k":"2"}}}"#, "message.data.k"),
        (#"{\#(to),"native":{"apns":{"a":1},"apns":{"a":2}}}"#, "native.apns"),
        (#"{\#(to),"native":{"fcm":{"a":1},"gcm":{"a":2}}}"#, "native.gcm"),
      ] {
        try await app.request(.post, "/api/sends", body: body).expectProblem(400, "invalidField", naming: field)
      }
      for body in [#"{"to":{"user":"bob"},}"#, "{\"to\":{\"user\":\"a\u{1}\"}}"] {
        try await app.request(.post, "/api/sends", body: body).expectProblem(400, "malformedBody")
      }
      let notUTF8 = "{\(to),\"message\":{\"body\":\"".utf8 + [0xC3, 0x28] + "\"}}".utf8
      try await app.request(.post, "/api/sends", bytes: Array(notUTF8), type: "application/json").expectProblem(
        400, "malformedBody")
      for type in ["application/x-ndjson", ";"] {
        try await app.request(.post, "/api/sends", body: "{\(to),\(message)}", type: type)
          .expectProblem(415, "unsupportedMediaType")
      }
      #expect(sink.isEmpty)
    }
  }

  @Test func sendWithoutCoveredPlatformIsImpossible() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      for body in [
        #"{"to":{"user":"bob"},"native":{"apns":{}},"platforms":["fcm"]}"#,
        #"{"to":{"device":{"platform":"apns","handle":"aa"}},"native":{"wns":"<toast/>"}}"#,
        #"{"to":{"device":{"platform":"apns","handle":"aa"}},"message":{"body":"b"},"platforms":["wns"]}"#,
      ] {
        try await app.request(.post, "/api/sends", body: body).expectProblem(422, "impossible")
      }
      #expect(sink.isEmpty)
    }
  }

  @Test func bodyOverTheLimitIsRefused() async throws {
    let sink = RecordingSink()
    try await Harness.run({ $0.sink = sink }) { app in
      func body(_ size: Int) -> String {
        let frame = #"{"to":{"user":"bob"},"template":{"properties":{"p":""}}}"#
        let text = String(repeating: "x", count: size - frame.utf8.count)
        return #"{"to":{"user":"bob"},"template":{"properties":{"p":"\#(text)"}}}"#
      }
      #expect(try await app.request(.post, "/api/sends", body: body(65536)).status == 202)
      for path in [
        "/api/sends", "/api/notifications?pns=apns&to_tag=bob", "/api/notifications/secure?to_tag=bob", "/api/register",
      ] {
        for size in [65537, 300_000] {
          try await app.request(.post, path, body: body(size)).expectProblem(413, "tooLarge")
          try await app.postInChunks(Array(body(size).utf8), to: path).expectProblem(413, "tooLarge")
        }
      }
      try await app.request(.put, "/api/register/x", body: body(65537)).expectProblem(413, "tooLarge")
      // Escapes may be longer in the record than in the body; a body within its limit fits into a record.
      let text = String(repeating: #"\u0001"#, count: 10_000)
      let heavy = #"{"to":{"user":"bob"},"template":{"properties":{"p":"\#(text)"}}}"#
      #expect(try await app.request(.post, "/api/sends", body: heavy).status == 202)
      #expect(sink.records.count == 2)
    }
  }
}
