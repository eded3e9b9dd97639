import FanfareCore

/// The users of the demo and their devices.
struct DemoPopulation: Sendable {
  struct Device: Sendable {
    let owner: String
    /// The name for people.
    let name: String
    let platform: Platform
    let handle: String

    /// The body of the registration request.
    var body: String {
      let words = platform.vocabulary
      let id = RegistrationID.random()
      return #"{"platform":"\#(words.system)","instId":"\#(id)","\#(words.handleMember)":"\#(handle)"}"#
    }
  }

  /// The users whose notifications are shown.
  let guests: [Device] = [
    Device(owner: "alice", name: "alice's iPhone", platform: .apns, handle: token()),
    Device(owner: "bob", name: "bob's Android", platform: .fcm, handle: "bob-\(RegistrationID.random())"),
    Device(owner: "carol", name: "carol's iPhone", platform: .apns, handle: token()),
    Device(
      owner: "carol", name: "carol's PC", platform: .wns,
      handle: "https://cloud.notify.windows.com/?token=\(RegistrationID.random())"),
  ]

  /// The devices of the stream's users `user-0`, `user-1` and so on: one to three each.
  ///
  /// A few are dead; every fiftieth user has none.
  let crowd: [Device]
  /// The number of the stream's users.
  let users: Int

  init(users: Int) {
    self.users = users
    crowd = (0..<users).filter { $0 % 50 != 49 }.flatMap { number in
      let owner = "user-\(number)"
      let isDead = number % 100 == 7
      var devices: [Device] = []
      if number % 3 != 1 {
        devices.append(
          Device(
            owner: owner, name: "", platform: .apns, handle: isDead ? "dead" + Self.token().dropFirst(4) : Self.token())
        )
      }
      if number % 3 != 0 {
        devices.append(
          Device(owner: owner, name: "", platform: .fcm, handle: "\(isDead ? "dead-" : "")\(RegistrationID.random())"))
      }
      if number % 10 == 0 {
        devices.append(
          Device(
            owner: owner, name: "", platform: .wns,
            handle: "https://cloud.notify.windows.com/?token=\(RegistrationID.random())"))
      }
      return devices
    }
  }

  /// An APNs token of 64 digits that asks the simulator for no fault.
  private static func token() -> String {
    "1" + Hexadecimal.text(RegistrationID.random().bytes + RegistrationID.random().bytes).dropFirst()
  }
}
