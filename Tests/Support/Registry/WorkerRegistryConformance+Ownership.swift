import FanfareCore
import Testing

extension WorkerRegistryConformance {
  /// A change to an owned id. Every case begins with alice's registration of the handle `aa01` on APNs.
  private struct Attempt: Sendable {
    let words: String
    var user = "bob"
    var handle = "aa01"
    var platform = Platform.apns
    var tags: [String] = ["sport"]
    /// Nil when it succeeds.
    let refusal: RegistryError.Code?
  }

  private static let attempts = [
    Attempt(words: "the owner registers the same again", user: "alice", refusal: nil),
    Attempt(words: "the owner reports a new handle", user: "alice", handle: "bb02", refusal: nil),
    Attempt(words: "the owner moves to another platform", user: "alice", handle: "t", platform: .fcm, refusal: nil),
    Attempt(words: "another user presents the same handle", refusal: nil),
    Attempt(words: "another user presents it in upper case", handle: "AA01", refusal: nil),
    Attempt(words: "another user presents another handle", handle: "bb02", refusal: .gone),
    Attempt(words: "another user presents it for another platform", platform: .fcm, refusal: .gone),
    Attempt(words: "a user whose name differs only in case", user: "Alice", handle: "bb02", refusal: .gone),
    Attempt(words: "a user whose name looks the same", user: "alice\u{200B}", handle: "bb02", refusal: .gone),
    Attempt(words: "another user claims the owner's tag", tags: ["username:alice"], refusal: .forbidden),
    Attempt(
      words: "the owner claims another user's tag", user: "alice", tags: ["news", "username:bob"], refusal: .forbidden),
    Attempt(words: "the owner claims an empty user's tag", user: "alice", tags: ["username:"], refusal: .forbidden),
  ]

  /// The attempts by id and by installation, and the rule of one holder per handle.
  static let ownership: [Self] =
    attempts.map { attempt in
      Self("by id: \(attempt.words)") { store in
        let before = try await store.register("alice", "aa01", platform: .apns, tags: ["news"])
        try await check(attempt, on: before, in: store) {
          try await store.complete(
            before.id, attempt.user, attempt.handle, platform: attempt.platform, tags: attempt.tags)
        }
      }
    }
    + attempts.map { attempt in
      Self("by installation: \(attempt.words)") { store in
        let before = try await store.install("i-1", "alice", "aa01", platform: .apns, tags: ["news"])
        try await check(attempt, on: before, in: store) {
          try await store.install("i-1", attempt.user, attempt.handle, platform: attempt.platform, tags: attempt.tags)
        }
      }
    } + [
      Self("taking a handle removes the registration that held it") { store in
        let former = try await store.register("alice", "aa01", platform: .apns, tags: ["news"])
        let next = try await store.register("bob", "AA01", platform: .apns, at: .start + .seconds(1))
        #expect(try await store.reached(by: .user("alice")) == [])
        #expect(try await store.reached(by: .tag("news")) == [])
        #expect(try await store.reached(by: .device(.apns, handle: "aa01")) == [next.id])
        await expect(.gone) { try await store.complete(former.id, "alice", "aa01", platform: .apns) }
        await expect(.gone) { try await store.complete(former.id, "alice", "ff", platform: .apns) }
      },
      Self("rotating to a held handle removes its holder, an installation too") { store in
        let installed = try await store.install("i-1", "alice", "h1")
        let other = try await store.register("alice", "h2")
        _ = try await store.complete(other.id, "alice", "h1")
        #expect(try await store.registration(installed.id, hub: store.hub) == nil)
        #expect(try await store.reached(by: .tag("installation:i-1")) == [])
        #expect(try await store.reached(by: .user("alice")) == [other.id])
      },
      Self("an installation takes its handle from a registration") { store in
        let former = try await store.register("alice", "h1")
        let installed = try await store.install("i-1", "bob", "h1")
        #expect(try await store.reached(by: .user("alice")) == [])
        #expect(try await store.reached(by: .user("bob")) == [installed.id])
        await expect(.gone) { try await store.complete(former.id, "alice", "h1") }
      },
      Self("names that are canonically equivalent are two users") { store in
        let composed = "ren\u{E9}"
        let decomposed = "rene\u{301}"
        let registration = try await store.register(composed, "h1")
        await expect(.gone) { try await store.complete(registration.id, decomposed, "h2") }
        await expect(.notFound) {
          try await store.remove(registration.id, hub: store.hub, user: decomposed, at: .start)
        }
        await expect(.forbidden) { try await store.register(composed, "h2", tags: ["username:\(decomposed)"]) }
        #expect(try await store.reached(by: .user(decomposed)) == [])
        _ = try await store.complete(registration.id, decomposed, "h1")
        #expect(try await store.reached(by: .user(composed)) == [])
        #expect(try await store.reached(by: .user(decomposed)) == [registration.id])
      },
      Self("tags and names with control characters are refused") { store in
        let id = try await store.issue(hub: store.hub, handle: nil, at: .start)
        for tag in [
          "", "username:bob\0", "news\0", "news\nusername:bob", "username:\u{301}bob",
          String(repeating: "x", count: 121),
        ] {
          await expect(.forbidden) { try await store.complete(id, "alice", "h1", tags: [tag]) }
        }
        for user in ["", "alice\0", "alice\nsport", "a:b"] {
          await expect(.forbidden) { try await store.complete(id, user, "h1") }
        }
        for installation in ["", "i\0", "i\nusername:bob"] {
          await expect(.forbidden) { try await store.install(installation, "alice", "h1") }
        }
        #expect(try await store.reached(by: .user("alice")) == [])
      },
    ]

  private static func check(
    _ attempt: Attempt, on before: Registration, in store: any WorkerRegistry, act: () async throws -> Registration
  ) async throws {
    guard let refusal = attempt.refusal else {
      let after = try await act()
      #expect(after.id == before.id && after.user == attempt.user)
      #expect(after.handle == DeviceHandle.normalized(attempt.handle, platform: attempt.platform))
      #expect(try await store.registration(before.id, hub: store.hub) == after)
      #expect(try await store.reached(by: .tag("news")) == [], "the former tags are gone")
      #expect(try await store.reached(by: .tag("sport")) == [before.id])
      #expect(try await store.reached(by: .user(attempt.user)) == [before.id])
      if attempt.user != before.user { #expect(try await store.reached(by: .user(before.user)) == []) }
      return
    }
    await expect(refusal) { try await act() }
    #expect(try await store.registration(before.id, hub: store.hub) == before, "nothing has changed")
    #expect(try await store.reached(by: .tag("news")) == [before.id])
    #expect(try await store.reached(by: .tag("sport")) == [])
    #expect(try await store.reached(by: .user("bob")) == [])
  }
}
