import Foundation
import Testing

@testable import fanfare_dev

/// The commands that are clients of the HTTP API, and `fanfare doctor`, in a running deployment.
@Suite(.timeLimit(.minutes(3))) struct ClientCommandTests {
  @Test func sendsAndDevicesAreHandledByCommands() async throws {
    try await Deployment.with { deployment in
      let caller = try await deployment.startFrontEnd()
      _ = try await deployment.ready(try deployment.startWorker())
      func run(_ arguments: [String], as user: String = "operator") async throws -> (Int32, String, String) {
        try await deployment.run(
          arguments, ["FANFARE_URL": caller.base, "FANFARE_USER": user, "FANFARE_PASSWORD": user])
      }
      let device = try await caller.call(
        "PUT", "/api/installations/phone-1", user: "bob",
        body: #"{"platform":"fcm","handle":"token-1","tags":["news"],"locale":"de-AT"}"#)
      #expect(device.status < 300, "\(device.text)")

      // A send is followed until it is settled.
      let sent = try await run(["send", "--user", "bob", "--body", "Hello", "--wait", "--timeout", "60"])
      #expect(sent.0 == 0, "\(sent.2)")
      let id = try #require(sent.1.split(separator: "\n").first.map(String.init))
      let shown = try await run(["sends", "show", id])
      #expect(shown.0 == 0 && shown.1.contains("settled") && shown.1.contains("1 delivered"), "\(shown)")
      let list = try await run(["sends", "list", "--json"])
      #expect(list.1.split(separator: "\n").count == 1 && list.1.contains(id), "\(list)")
      let table = try await run(["sends", "list"])
      #expect(table.1.hasPrefix("ID ") && table.1.contains("1 delivered"), "\(table)")

      // A scheduled send is cancelled, a broadcast watched to its end.
      let scheduled = try await run(["send", "--user", "bob", "--body", "Later", "--send-at", "+1h"])
      let cancelled = try await run(["sends", "cancel", scheduled.1.trimmingCharacters(in: .newlines)])
      #expect(cancelled.0 == 0 && cancelled.1.contains("cancelled"), "\(cancelled)")
      let broadcast = try await run(["broadcast", "start", "--everyone", "--body", "All", "--detach"])
      let watched = try await run(["broadcast", "watch", broadcast.1.trimmingCharacters(in: .newlines)])
      #expect(watched.0 == 0 && watched.1.contains("settled"), "\(watched)")

      // Devices are listed without their handles, shown and removed.
      let devices = try await run(["devices", "list", "--user", "bob"])
      #expect(devices.1.contains("fcm") && !devices.1.contains("token-1"), "\(devices)")
      let registration = try #require(devices.1.split(separator: "\n").last?.split(separator: " ").first)
      let deviceText = try await run(["devices", "show", String(registration)]).1
      #expect(deviceText.contains("phone-1") && deviceText.contains("de-AT"), "\(deviceText)")
      let removed = try await run(["devices", "remove", String(registration)], as: "bob")
      #expect(removed.0 == 0 && removed.1 == "\(registration): removed\n", "\(removed)")
      #expect(try await run(["devices", "list", "--user", "bob"]).1 == "")

      // A refusal names what is missing, and never the password.
      let refused = try await run(["devices", "list", "--user", "bob"], as: "alice")
      #expect(
        refused.0 == 1 && refused.2.contains("read:all") && refused.2.contains("fanfare keys create"), "\(refused)")
      let unknown = try await deployment.run(
        ["sends", "list"], ["FANFARE_URL": caller.base, "FANFARE_USER": "bob", "FANFARE_PASSWORD": "marked-secret"])
      #expect(unknown.status == 1 && unknown.errors.contains("FANFARE_USER"), "\(unknown)")
      #expect(!(unknown.output + unknown.errors).contains("marked-secret"))

      // The deployment is well, and its simulator accepts the credentials.
      let well = try await deployment.run(["doctor", "--json", "--role", "worker", "--role", "ledger"])
      #expect(well.status == 0, "\(well)")
      for platform in ["apns", "fcm", "wns"] {
        #expect(well.output.contains(#""area":"push default \#(platform)""#), "\(well.output)")
      }
      #expect(!well.output.contains(#""level":"wrong""#), "\(well.output)")

      // A simulator with another account refuses them.
      let directory = deployment.directory.appending(path: "simulator")
      let keys = directory.appending(path: "hub.yaml")
      let text = try String(contentsOf: keys, encoding: .utf8)
      try text.replacing(/apns.teamID: [A-Z0-9]{10}/, with: "apns.teamID: AAAAAAAAAA")
        .write(to: keys, atomically: true, encoding: .utf8)
      let ill = try await deployment.run(["doctor", "--quiet", "--role", "worker"])
      #expect(ill.status == 1 && ill.output.contains("wrong    push default apns: "), "\(ill)")
    }
  }
}
