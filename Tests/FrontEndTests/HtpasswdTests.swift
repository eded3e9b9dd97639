import FanfareCore
import Foundation
import Logging
import NIOPosix
import Support
import Synchronization
import Testing

@testable import FrontEnd
@testable import HTTPServer

@Suite(.timeLimit(.minutes(2))) struct HtpasswdTests {
  // Made with `htpasswd -nbB`, `mkpasswd -m yescrypt`, `mkpasswd -m sha512crypt -R 1000` and `openssl passwd -6`, at
  // low cost.
  private static let bcrypt = #"$2y$04$MI0972Rll9Ecwmd0N6d2SuQ8EExHQJwNVTeZ1xwW4/vOhWVqHluoS"#
  private static let yescrypt = #"$y$j75$GFL4zbXYuYMniJo7D8JP20$NA86f7wbd9HuglobMGjfYu7xzpybiUUOl6K93tROpo."#
  private static let sha512 =
    #"$6$rounds=1000$4JdX3/5IMn0aRDSi$ROIY.x7oDsVm2bKmgO6sI0J52X8CnnJuwNbGbHrApBodvfgFc7NkhdSDLhw85R1wHEcNCGn1hnPs6IZRWt.1l."#
  private static let openssl =
    #"$6$abcdefgh$.jmCRlh0Tq70vFbeg2pLx9UK3DYFplAs2OkHnpkXTixQGMXitGITdXk3Zgf0EJgtrf1IGKksTz6.LLCywaJZU."#
  private static let changed = #"$2y$04$m0O5zpk4c31Z4Yyp.LWbF.UBmwQRDzCklccB3ahQVkxiOPZGsIVZ6"#

  private static let file = """
    # users of the test
    brigitte:\(bcrypt)

      # an indented comment
    Yves Müller:\(yescrypt)
    sven:\(sha512)\r
    olga:\(openssl):19000:0:99999:7:::
    """

  private static let passwords = [
    ("brigitte", "correct horse: battery"), ("Yves Müller", "päss wörd"), ("sven", "tr0ub4dor&3"),
    ("olga", "tr0ub4dor&3"),
  ]

  /// A thread-safe counter.
  private final class Count: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }
    func increment() { count.add(1, ordering: .relaxed) }
  }

  /// Records whether lines are logged on an event loop.
  private final class LogPlaces: Sendable {
    private let places = Mutex<[Bool]>([])

    var areOnEventLoops: [Bool] { places.withLock { $0 } }
    var logger: Logger { Logger(label: "test") { _ in Handler(places: self) } }

    private struct Handler: LogHandler {
      let places: LogPlaces
      var metadata: Logger.Metadata = [:]
      var logLevel = Logger.Level.info

      subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
      }

      func log(event: LogEvent) {
        places.places.withLock { $0.append(MultiThreadedEventLoopGroup.currentEventLoop != nil) }
      }
    }
  }

  /// Writes a temporary password file.
  private func withFile(_ text: String, _ body: (String) async throws -> Void) async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "fanfare-htpasswd-\(UUID().uuidString)").path
    try Data(text.utf8).write(to: URL(filePath: path))
    defer {
      // A file left in the temporary directory does no harm.
      try? FileManager.default.removeItem(atPath: path)
    }
    try await body(path)
  }

  private func credentials(_ user: String, _ password: String) throws -> BasicCredentials {
    try #require(BasicCredentials(user: user, password: password))
  }

  private func login(_ authenticator: HtpasswdAuthenticator, _ user: String, _ password: String) async throws
    -> Principal?
  {
    try await authenticator.authenticate(.basic(try credentials(user, password)), hub: .default, from: .unknown)
  }

  @Test func everyHashSchemeAcceptsOnlyTheRightPassword() async throws {
    try await withFile(Self.file) { path in
      let authenticator = try HtpasswdAuthenticator(
        path: path, policy: ScopePolicy(users: ["sven": [.operate]]), logger: TestKafka.quietLogger)
      for (user, password) in Self.passwords {
        // Twice: hashed, then cached.
        for _ in 0..<2 {
          let principal = try await login(authenticator, user, password)
          #expect(principal?.user == user)
          #expect(principal?.scopes.contains(.operate) == (user == "sven"))
        }
        for wrong in ["", " \(password)", password + " ", password.uppercased() + "x", String(password.dropLast())] {
          #expect(try await login(authenticator, user, wrong) == nil)
        }
      }
      for stranger in ["Brigitte", "brigitte ", "nobody", "#", "Yves Mu\u{308}ller"] {
        for (_, password) in Self.passwords {
          #expect(
            try await login(authenticator, stranger, password) == nil,
            "\(stranger)")
        }
      }
    }
  }

  @Test func usersOfThePasswordFileAreAuthenticatedOverHTTP() async throws {
    try await withFile(Self.file) { path in
      let authenticator = try HtpasswdAuthenticator(path: path, logger: TestKafka.quietLogger)
      let sink = RecordingSink()
      try await Harness.run({
        $0.hubs = [FrontEndHub(name: .default, authenticators: [authenticator])]
        $0.sink = sink
      }) { app in
        for (user, password) in Self.passwords {
          let reply = try await app.request(
            .post, "/api/notifications?pns=apns&to_tag=bob", as: nil, body: #""x""#,
            headers: [("Authorization", Harness.basic(user, password))])
          #expect(reply.status == 200)
          for (user, password) in [(user, "wrong"), ("nobody", password), (user, user)] {
            try await app.request(
              .post, "/api/register", as: nil, headers: [("Authorization", Harness.basic(user, password))]
            ).expectProblem(401, "unauthenticated")
          }
        }
        #expect(try sink.sends().map(\.sender) == Self.passwords.map(\.0))
      }
    }
  }

  @Test(arguments: [
    ("md5:$apr1$QMe8Z/l6$J6tujwSxNQXwF2lpsYSSb0", "MD5"), ("md5:$1$abcdefgh$irWbblnpmw.5z7wgBnprh0", "MD5"),
    ("sha:{SHA}EfatjsUqKYSrqv18O1FlA3hcIHI=", "SHA-1"),
    ("sha256:$5$rounds=1000$k5RO.F8bq/aQP40U$d46QgaYyKrmc/HPWSr3VP0cjCxgEXGQfjKFxz8sH3H0", "SHA-256"),
    ("des:rqXexS6ZhobKA", "DES"), ("plain:secret", "plain"), ("empty:", "plain"),
    ("scrypt:$7$CU..../....x$y", "scheme"),
    ("nobody", "':'"), (":$6$abcdefgh$x", "user name"), ("a\u{1}b:\(bcrypt)", "user name"),
    ("brigitte:\(bcrypt)", "earlier line"),
    ("cut:$2y$04$jbCBR/jXVA.jB3DAU4oxvu4/k54LIrN13dUf47hrTcpSicSdABMn", "cut short"),
    ("setting:$2y$04$jbCBR/jXVA.jB3DAU4oxvu", "cut short"), ("setting:$6$abcdefgh", "cut short"),
    ("setting:$6$abcdefgh$", "cut short"), ("setting:$6$rounds=5000$abcdefgh", "cut short"),
    ("cut:\(openssl.dropLast())", "cut short"), ("setting:$y$j75$7Ne7wKYXNBqVE87Xve8Nt0", "cut short"),
    ("setting:$y$j75$7Ne7wKYXNBqVE87Xve8Nt0$", "cut short"), ("cut:\(yescrypt.dropLast())", "cut short"),
    ("long:\(openssl)x", "cut short"),
    ("cost:$2y$99$jbCBR/jXVA.jB3DAU4oxvu4/k54LIrN13dUf47hrTcpSicSdABMnm", "cut short"),
  ])
  func invalidLineIsReportedByItsNumber(line: String, reason: String) async throws {
    try await withFile("# first\nbrigitte:\(Self.bcrypt)\n\n\(line)\nsven:\(Self.sha512)\n") { path in
      let error = #expect(throws: FrontEndError.self) {
        try HtpasswdAuthenticator(path: path, logger: TestKafka.quietLogger)
      }
      #expect(error?.code == .htpasswd)
      #expect(error?.message.contains("line 4 ") == true, "\(error?.message ?? "")")
      #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
      let secret = String(line.split(separator: ":").last ?? "").suffix(12)
      if secret.utf8.count == 12 { #expect(error?.message.contains(secret) == false) }
    }
  }

  @Test func unreadableFileIsRefused() async throws {
    let missing = #expect(throws: FrontEndError.self) {
      try HtpasswdAuthenticator(path: "/nonexistent/htpasswd", logger: TestKafka.quietLogger)
    }
    #expect(missing?.code == .htpasswd && missing?.message.contains("/nonexistent/htpasswd") == true)
    try await withFile("") { path in
      try Data([0xFF, 0xFE, 0x3A]).write(to: URL(filePath: path))
      let error = #expect(throws: FrontEndError.self) {
        try HtpasswdAuthenticator(path: path, logger: TestKafka.quietLogger)
      }
      #expect(error?.message.contains("UTF-8") == true)
    }
  }

  /// The mounted secrets of Kubernetes are replaced by changing a link.
  @Test func fileBehindASymbolicLinkIsReloadedWhenTheLinkChanges() async throws {
    try await withFile(Self.file) { path in
      let (link, other) = (path + ".link", path + ".other")
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
      defer {
        for made in [link, other] { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: made) } }
      }
      let time = Mutex(ContinuousClock.now)
      var configuration = HtpasswdAuthenticator.Configuration()
      configuration.now = { time.withLock { $0 } }
      let authenticator = try HtpasswdAuthenticator(
        path: link, configuration: configuration, logger: TestKafka.quietLogger)
      func isIn(_ user: String, _ password: String) async throws -> Bool {
        try await login(authenticator, user, password) != nil
      }
      #expect(try await isIn("sven", "tr0ub4dor&3"))
      // The link stays; its target is replaced.
      try Data("brigitte:\(Self.changed)\n".utf8).write(to: URL(filePath: other))
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.moveItem(atPath: other, toPath: path)
      try Data().write(to: URL(filePath: other))
      time.withLock { $0 += .seconds(1) }
      #expect(try await !isIn("sven", "tr0ub4dor&3"))
      #expect(try await isIn("brigitte", "new password"))
    }
  }

  @Test func changedFileIsReloadedUnlessItIsInvalid() async throws {
    try await withFile(Self.file) { path in
      let time = Mutex(ContinuousClock.now)
      var configuration = HtpasswdAuthenticator.Configuration()
      configuration.now = { time.withLock { $0 } }
      let log = LogRecorder()
      let authenticator = try HtpasswdAuthenticator(path: path, configuration: configuration, logger: log.logger)
      func isIn(_ user: String, _ password: String) async throws -> Bool {
        try await login(authenticator, user, password) != nil
      }
      #expect(try await isIn("brigitte", "correct horse: battery"))

      try Data("brigitte:\(Self.changed)\n".utf8).write(to: URL(filePath: path), options: .atomic)
      #expect(try await isIn("brigitte", "correct horse: battery"), "not checked yet")
      time.withLock { $0 += .seconds(1) }
      #expect(try await !isIn("brigitte", "correct horse: battery"), "cached credentials are dropped")
      #expect(try await isIn("brigitte", "new password"))
      #expect(try await !isIn("sven", "tr0ub4dor&3"))
      #expect(log.text.contains("Password file reloaded"))

      for broken in ["brigitte:plain", "\u{0}", "brigitte", "", "# nobody\n"] {
        try Data(broken.utf8).write(to: URL(filePath: path), options: .atomic)
        time.withLock { $0 += .seconds(1) }
        #expect(try await isIn("brigitte", "new password"), "the users stay")
      }
      #expect(log.text.contains("Changed password file ignored"))
      #expect(log.text.contains("line 1 "))
      try FileManager.default.removeItem(atPath: path)
      time.withLock { $0 += .seconds(1) }
      #expect(try await isIn("brigitte", "new password"))

      try Data("sven:\(Self.sha512)\n".utf8).write(to: URL(filePath: path), options: .atomic)
      time.withLock { $0 += .seconds(1) }
      #expect(try await isIn("sven", "tr0ub4dor&3"))
      #expect(try await !isIn("brigitte", "new password"))
    }
  }

  @Test(arguments: ["", "# nobody yet\n"]) func fileWithoutUsersRefusesEverybody(text: String) async throws {
    try await withFile(text) { path in
      let authenticator = try HtpasswdAuthenticator(path: path, logger: TestKafka.quietLogger)
      #expect(try await login(authenticator, "brigitte", "") == nil)
    }
  }

  /// Reading a large file takes as long as answering thousands of requests.
  @Test func changedFileIsNotReadOnTheEventLoop() async throws {
    try await withFile(Self.file) { path in
      let time = Mutex(ContinuousClock.now)
      var configuration = HtpasswdAuthenticator.Configuration()
      configuration.now = { time.withLock { $0 } }
      let places = LogPlaces()
      let authenticator = try HtpasswdAuthenticator(path: path, configuration: configuration, logger: places.logger)
      try Data("brigitte:\(Self.changed)\n".utf8).write(to: URL(filePath: path), options: .atomic)
      time.withLock { $0 += .seconds(1) }
      let executor = EventLoopExecutor(MultiThreadedEventLoopGroup.singleton.next())
      let (isOnLoop, principal) = try await withTaskExecutorPreference(executor) {
        let isOnLoop = MultiThreadedEventLoopGroup.currentEventLoop != nil
        return (
          isOnLoop, try await login(authenticator, "brigitte", "new password")
        )
      }
      #expect(isOnLoop && principal != nil)
      #expect(places.areOnEventLoops == [false])
    }
  }

  @Test func concurrentRequestsShareOneCheck() async throws {
    let time = ContinuousClock.now
    let verified = CredentialCache(capacity: 10, timeToLive: .seconds(60), limit: .seconds(150), now: { time })
    let pool = HashingThreads(threads: 1, maximumWaiting: 0)
    let known = try credentials("a", "b")
    let checks = Count()
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<100 {
        group.addTask {
          let end = try await verified.verify(known, generation: 0) { () throws(AuthenticationError) in
            checks.increment()
            return try await pool.run { true }
          }
          return end != nil
        }
      }
      for try await isRight in group { #expect(isRight) }
    }
    #expect(checks.value == 1)
  }

  @Test func cachedCredentialsAreBoundedInTimeAndNumber() async throws {
    let time = Mutex(ContinuousClock.now)
    let verified = CredentialCache(
      capacity: 3, timeToLive: .seconds(60), limit: .seconds(150), now: { time.withLock { $0 } })
    let checks = Count()
    func check(_ user: String, isRight: Bool = true, generation: Int = 0) async throws -> Bool {
      let end = try await verified.verify(try credentials(user, "p"), generation: generation) {
        () throws(AuthenticationError) in
        checks.increment()
        return isRight
      }
      return end != nil
    }
    func count() -> Int { checks.value }
    #expect(try await check("a") && count() == 1)
    for _ in 0..<4 {
      time.withLock { $0 += .seconds(30) }
      #expect(try await check("a", isRight: false) && count() == 1, "each use extends the time")
    }
    time.withLock { $0 += .seconds(30) }
    #expect(try await !check("a", isRight: false) && count() == 2, "expired")
    #expect(try await !check("a", isRight: false) && count() == 3, "wrong credentials are not cached")
    for user in ["a", "b", "c", "d", "e"] { #expect(try await check(user)) }
    let before = count()
    var remembered = 0
    for user in ["a", "b", "c", "d", "e"] where try await check(user, isRight: false) { remembered += 1 }
    #expect((1...3).contains(remembered) && count() == before + 5 - remembered)
    #expect(try await !check("e", isRight: false, generation: 1))
    #expect(try await check("f", generation: 0), "results of older users are not cached")
    #expect(try await !check("f", isRight: false, generation: 0))
  }

  @Test func hashingPoolRefusesWorkBeyondItsQueue() async throws {
    let pool = HashingThreads(threads: 1, maximumWaiting: 1)
    let gate = DispatchSemaphore(value: 0)
    try await withThrowingTaskGroup(of: Bool.self) { group in
      // The first occupies the thread, the second waits, the third is refused at once.
      for _ in 0..<3 {
        group.addTask {
          do {
            return try await pool.run {
              gate.wait()
              return true
            }
          } catch AuthenticationError.overloaded {
            return false
          }
        }
      }
      #expect(try await group.next() == false)
      gate.signal()
      gate.signal()
      for try await isDone in group { #expect(isDone) }
    }
  }
}
