import FanfareCore
package import Registry
import Testing

extension DeviceRegistryConformance {
  /// The limits of the stores that `limited` checks: three devices of a user, and an hour of quarantine.
  package static let limits: RegistrationLimits = {
    var limits = RegistrationLimits()
    limits.maximumDevicesPerUser = 3
    limits.quarantine = .seconds(3600)
    return limits
  }()

  /// Cases for a store with `limits`.
  package static let limited: [Self] = surplus + quarantine + inquiries

  private static let surplus: [Self] = [
    Self("a user's device beyond the limit replaces the longest unseen one") { store in
      var devices: [Registration] = []
      for number in 0..<3 {
        devices.append(try await store.register("ann", "a\(number)", at: .start + .seconds(number)))
      }
      _ = try await store.complete(devices[0].id, "ann", "a0", at: .start + .seconds(10))
      let fourth = try await store.register("ann", "a3", at: .start + .seconds(11))
      #expect(try await store.reached(by: .user("ann")) == [devices[0].id, devices[2].id, fourth.id])
      let buried = try await store.tombstones(
        hub: store.hub, since: .start, cause: .surplus, after: nil, limit: 9)
      #expect(buried.map(\.registration) == [devices[1].id])
      #expect(buried.first?.tombstone.detail == fourth.id.description)
      // A device that is renewed, or taken over from another user, counts like a new one only for its new user.
      _ = try await store.complete(fourth.id, "ann", "a3", at: .start + .seconds(12))
      _ = try await store.install("i", "ben", "b", at: .start + .seconds(13))
      let taken = try await store.install("i", "ann", "b", at: .start + .seconds(14))
      #expect(try await store.reached(by: .user("ann")) == [devices[0].id, fourth.id, taken.id])
      let late = UnixTime.start + .seconds(3611)
      await expect(.gone) { try await store.complete(devices[1].id, "ann", "a1", at: late) }
    },
    Self("a surplus device comes back with its id when its app registers again") { store in
      var devices: [Registration] = []
      for number in 0..<4 {
        devices.append(try await store.register("ann", "a\(number)", at: .start + .seconds(number)))
      }
      let back = try await store.complete(devices[0].id, "ann", "a0", at: .start + .seconds(5))
      #expect(back.createdAt == devices[0].createdAt)
      #expect(try await store.reached(by: .user("ann")) == [devices[2].id, devices[3].id, devices[0].id])
    },
    Self("surplus devices are restored as far as there is room, and none for a living one") { store in
      var devices: [Registration] = []
      for number in 0..<5 {
        devices.append(try await store.register("ann", "a\(number)", at: .start + .seconds(number)))
      }
      let page = QuarantinePage(hub: store.hub, platform: nil, dropped: .start..<(.start + .seconds(9)))
      let now = UnixTime.start + .seconds(10)
      for isTrial in [true, false] {
        let step = try await store.restore(page, isTrial: isTrial, at: now)
        #expect((step.restored, step.taken, step.surplus) == (0, 0, 2))
      }
      #expect(try await store.reached(by: .user("ann")) == Set(devices[2...].map(\.id)))
      try await store.remove(devices[3].id, hub: store.hub, user: "ann", at: now)
      for isTrial in [true, false] {
        let step = try await store.restore(page, isTrial: isTrial, at: now)
        #expect((step.restored, step.taken, step.surplus) == (1, 0, 1))
      }
      #expect(try await store.reached(by: .user("ann")) == [devices[0].id, devices[2].id, devices[4].id])
      #expect(try await store.registration(devices[0].id, hub: store.hub) == devices[0])
    },
    Self("a device with templates counts as one, and goes and comes back with them") { store in
      var all: [RegistrationID: Registration] = [:]
      for number in 0..<3 {
        let now = UnixTime.start + .seconds(number)
        for one in [
          try await store.register("ann", "a\(number)", at: now),
          try await store.register("ann", "a\(number)", template: "x", at: now),
          try await store.register("ann", "a\(number)", template: "y", at: now),
        ] { all[one.id] = one }
      }
      #expect(try await store.list(.user("ann"), hub: store.hub, of: .whole, limit: 99).registrations.count == 9)
      let fourth = try await store.register("ann", "a3", template: "x", at: .start + .seconds(5))
      let left = try await store.list(.user("ann"), hub: store.hub, of: .whole, limit: 99).registrations
      #expect(left.count == 7 && left.allSatisfy { $0.handle != "a0" })
      try await store.remove(fourth.id, hub: store.hub, user: "ann", at: .start + .seconds(6))
      let page = QuarantinePage(hub: store.hub, platform: nil, dropped: .start..<(.start + .seconds(9)))
      for isTrial in [true, false] {
        let step = try await store.restore(page, isTrial: isTrial, at: .start + .seconds(7))
        #expect((step.restored, step.taken, step.surplus) == (3, 0, 0))
      }
      let back = try await store.list(.user("ann"), hub: store.hub, of: .whole, limit: 99).registrations
      #expect(back == all.values.sorted { $0.id < $1.id })
    },
    Self("concurrent registrations leave no more devices than the next one allows") { store in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<12 {
          group.addTask { _ = try await store.install("i\(number)", "ann", "h\(number)") }
        }
        try await group.waitForAll()
      }
      _ = try await store.install("last", "ann", "last", at: .start + .seconds(1))
      #expect(try await store.reached(by: .user("ann")).count == 3)
    },
    Self("an import keeps to the limit") { store in
      let lines = try (0..<7).map { number in
        let text = #"{"user":"ann","platform":"fcm","handle":"h\#(number)"}"#
        return try RegistrationLine(Array(text.utf8)[...], number: number + 1, hub: store.hub, at: .start)
      }
      let batch = ImportBatch(hub: store.hub, file: nil, bytes: 0..<1, lines: lines, counts: ImportCounts())
      _ = try await store.take(batch, at: .start)
      #expect(try await store.reached(by: .user("ann")).count == 3)
    },
  ]

  private static let quarantine: [Self] = [
    Self("a dropped device gets no pushes, and its app's next registration brings it back") { store in
      let device = try await store.register("ann", "h", tags: ["news"])
      try await store.drop(device, at: .start + .seconds(1))
      for audience in [
        Audience.user("ann"), .tag("news"), .everyone, .registration(device.id), .device(.fcm, handle: "h"),
      ] {
        #expect(try await store.reached(by: audience).isEmpty)
      }
      #expect(try await store.registration(device.id, hub: store.hub) == nil)
      let later = UnixTime.start + .seconds(2)
      // The id is issued again for the handle; the tutorial app completes the id that it has stored.
      #expect(try await store.issue(hub: store.hub, handle: "h", at: later) == device.id)
      await expect(.gone) { try await store.complete(device.id, "eve", "other", at: later) }
      let back = try await store.complete(device.id, "ann", "h2", at: later)
      #expect(back.createdAt == device.createdAt)
      #expect(try await store.reached(by: .user("ann")) == [device.id])
      let tombstones = try await store.tombstones(hub: store.hub, since: .start, cause: nil, after: nil, limit: 9)
      #expect(tombstones.isEmpty)
      // The same handle shows that the phone has changed hands.
      try await store.drop(back, at: later)
      #expect(try await store.complete(device.id, "ben", "h2", at: later).user == "ben")
    },
    Self("an installation comes back with its id") { store in
      let device = try await store.install("i", "ann", "h")
      try await store.drop(device, at: .start)
      #expect(try await store.install("i", "ann", "h", at: .start + .seconds(1)).id == device.id)
      try await store.drop(device, at: .start + .seconds(2))
      await expect(.gone) { try await store.install("i", "eve", "x", at: .start + .seconds(3)) }
    },
    Self("templates of a dead handle are not restored for a device of another user") { store in
      let native = try await store.register("ann", "h")
      let template = try await store.register("ann", "h", template: "a")
      try await store.drop(native, alsoRemoving: [template.id], at: .start)
      _ = try await store.register("ben", "h", at: .start + .seconds(1))
      let page = QuarantinePage(hub: store.hub, platform: nil, dropped: .start..<(.start + .seconds(9)))
      let step = try await store.restore(page, isTrial: false, at: .start + .seconds(2))
      #expect((step.restored, step.taken) == (0, 2))
      #expect(try await store.rendered(.everyone, .devices(name: nil)) == [])
    },
    Self("a quarantined installation takes its templates along when it is removed or registered again") { store in
      for isRegisteredAgain in [false, true] {
        let native = try await store.install("i", "ann", "h", templates: ["a", "b"])
        let other = try await store.register("ann", "h", template: "c")
        let rows = try await store.registrations(ofInstallation: "i", hub: store.hub)
        try await store.drop(native, alsoRemoving: Set(rows.dropFirst().map(\.id) + [other.id]), at: .start)
        if isRegisteredAgain {
          _ = try await store.install("i", "ann", "h", templates: ["a"], at: .start + .seconds(1))
        } else {
          try await store.remove(native.id, hub: store.hub, user: "ann", at: .start + .seconds(1))
        }
        let before = try await store.registrations(ofInstallation: "i", hub: store.hub)
        #expect(before.map { $0.profile?.template?.name } == (isRegisteredAgain ? [nil, "a"] : []))
        let page = QuarantinePage(hub: store.hub, platform: nil, dropped: .start..<(.start + .seconds(9)))
        let step = try await store.restore(page, isTrial: false, at: .start + .seconds(2))
        #expect((step.restored, step.taken) == (1, 0), "only the registration of another id")
        #expect(try await store.registration(other.id, hub: store.hub) == other)
        #expect(try await store.registrations(ofInstallation: "i", hub: store.hub) == before)
        if !isRegisteredAgain { try await store.remove(other.id, hub: store.hub, user: "ann", at: .start) }
      }
    },
    Self("after the quarantine the id is gone, and a user's removal is final") { store in
      let devices = [try await store.register("ann", "h0"), try await store.register("ann", "h1")]
      for device in devices { try await store.drop(device, at: .start) }
      try await store.remove(devices[1].id, hub: store.hub, user: "ann", at: .start)
      await expect(.notFound) { try await store.remove(devices[0].id, hub: store.hub, user: "eve", at: .start) }
      await expect(.gone) { try await store.complete(devices[1].id, "ann", "h1") }
      let end = UnixTime.start + .seconds(3600)
      await expect(.gone) { try await store.complete(devices[0].id, "ann", "h0", at: end) }
      #expect(try await store.issue(hub: store.hub, handle: "h0", at: end) != devices[0].id)
    },
    Self("a selection is restored, except what others have taken") { store in
      var devices: [Registration] = []
      for number in 0..<6 {
        let device = try await store.register(
          "u\(number)", number == 5 ? "ab" : "h\(number)", platform: number == 5 ? .apns : .fcm, tags: ["t"])
        try await store.drop(device, at: .start + .seconds(number))
        devices.append(device)
      }
      _ = try await store.register("eve", "h2", at: .start + .seconds(9))
      var page = QuarantinePage(
        hub: store.hub, platform: .fcm, dropped: .start + .seconds(1)..<(.start + .seconds(9)), limit: 2)
      let now = UnixTime.start + .seconds(10)
      let trial = try await store.restore(page, isTrial: true, at: now)
      #expect((trial.restored, trial.taken) == (1, 1))
      #expect(try await store.reached(by: .tag("t")).isEmpty)
      var (restored, taken) = (0, 0)
      repeat {
        let step = try await store.restore(page, isTrial: false, at: now)
        restored += step.restored
        taken += step.taken
        page.after = step.last
      } while page.after != nil
      #expect((restored, taken) == (3, 1))
      #expect(try await store.reached(by: .tag("t")) == [devices[1].id, devices[3].id, devices[4].id])
      #expect(try await store.registration(devices[1].id, hub: store.hub) == devices[1])
    },
  ]
}

extension DeviceRegistry {
  /// Drops a device whose handle a push service called dead.
  fileprivate func drop(
    _ device: Registration, alsoRemoving others: Set<RegistrationID> = [], at now: UnixTime
  ) async throws {
    let verdict = DeadDevice(
      hub: device.hub, registration: device.id, handle: device.handle, since: nil, reason: "Unregistered")
    #expect(Set(try await drop([verdict], at: now)) == others.union([device.id]))
  }
}
