import Crypto
import FanfareCore
import Logging
import Support
import Testing

@testable import PushServices

@Suite struct ConfigurationTests {
  private let logger = Logger(label: "test")

  private func field(_ body: () throws -> Void) -> String? {
    do { try body() } catch { return (error as? PushConfigurationError)?.field }
    return nil
  }

  @Test func badAPNsConfigurationsNameTheField() {
    let changes: [(String, (inout APNsConfiguration) -> Void)] = [
      ("keyID", { $0.keyID = "short" }), ("teamID", { $0.teamID = "TEAM12345\n" }),
      ("privateKey", { $0.privateKey = "" }),
      ("privateKey", { $0.privateKey = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----" }),
      ("privateKey", { $0.privateKey = P384.Signing.PrivateKey().pemRepresentation }),
      ("topic", { $0.topic = "" }), ("topic", { $0.topic = "a b" }), ("host", { $0.host = "" }),
      ("host", { $0.host = "a/b" }),
      ("port", { $0.port = 0 }), ("trustRoots", { $0.trustRoots = "x" }), ("trustRoots", { $0.trustRoots = "" }),
      ("maximumConnections", { $0.maximumConnections = 0 }), ("requestTimeout", { $0.requestTimeout = .zero }),
      ("maximumQueuedPushes", { $0.maximumQueuedPushes = -1 }),
    ]
    for (expected, change) in changes {
      var configuration = APNsConfiguration(
        keyID: "ABC123DEFG", teamID: "TEAM123456", privateKey: TestKeys.p256.pemRepresentation, topic: "com.example.app"
      )
      change(&configuration)
      #expect(field { _ = try APNsSender(configuration, SenderResources(logger: logger)) } == expected)
    }
  }

  @Test func badServiceAccountsNameTheMember() throws {
    for member in ["project_id", "private_key", "client_email", "token_uri"] {
      for value in [Optional<Any>.none, "", 7] {
        let file = try TestKeys.serviceAccountFile([member: value])
        #expect(field { _ = try ServiceAccountKey(json: file) } == "serviceAccount." + member)
      }
    }
    for (member, value) in [
      ("private_key", TestKeys.p256.pemRepresentation), ("private_key", "x"),
      ("token_uri", "http://oauth2.example/token"),
      ("type", "authorized_user"), ("project_id", "a/../b"),
    ] {
      let file = try TestKeys.serviceAccountFile([member: value])
      #expect(field { _ = try ServiceAccountKey(json: file) } == "serviceAccount." + member)
    }
    for file in ["", "[]", "{", "x"] {
      #expect(field { _ = try ServiceAccountKey(json: Array(file.utf8)) } == "serviceAccount")
    }
  }

  @Test func badFCMConfigurationsNameTheField() throws {
    let changes: [(String, (inout FCMConfiguration) -> Void)] = [
      ("host", { $0.host = "a b" }), ("port", { $0.port = 65_536 }),
      ("tokenEndpoint", { $0.tokenEndpoint = "http://x/" }),
      ("trustRoots", { $0.trustRoots = "x" }), ("tokenTimeout", { $0.tokenTimeout = .zero }),
    ]
    for (expected, change) in changes {
      var configuration = FCMConfiguration(serviceAccount: try ServiceAccountKey(json: TestKeys.serviceAccountFile()))
      change(&configuration)
      #expect(field { _ = try FCMSender(configuration, SenderResources(logger: logger)) } == expected)
    }
  }

  @Test func badWNSConfigurationsNameTheField() {
    let changes: [(String, (inout WNSConfiguration) -> Void)] = [
      ("packageSID", { $0.flow = .store(packageSID: "", secret: "s") }),
      ("secret", { $0.flow = .store(packageSID: "p", secret: "") }),
      ("tenant", { $0.flow = .entra(tenant: "a/b", applicationID: "a", secret: "s") }),
      ("applicationID", { $0.flow = .entra(tenant: "t", applicationID: "", secret: "s") }),
      ("secret", { $0.flow = .entra(tenant: "t", applicationID: "a", secret: "\n") }),
      ("tokenEndpoint", { $0.tokenEndpoint = "login.live.com" }),
      ("connectTo.port", { $0.connectTo = ("localhost", 0) }),
      ("trustRoots", { $0.trustRoots = "x" }), ("maximumConnections", { $0.maximumConnections = 0 }),
    ]
    for (expected, change) in changes {
      var configuration = WNSConfiguration(flow: .store(packageSID: "p", secret: "s"))
      change(&configuration)
      #expect(field { _ = try WNSSender(configuration, SenderResources(logger: logger)) } == expected)
    }
  }

  /// Prints everything that holds or has read a secret, in every possible way.
  @Test func secretsAreNeverPrinted() throws {
    let mark = "5ecret5"
    var found: [Any] = []
    var apns = APNsConfiguration(keyID: "ABC123DEFG", teamID: "TEAM123456", privateKey: mark, topic: "com.example.app")
    found += [apns, Optional(apns) as Any]
    do { _ = try APNsSender(apns, SenderResources(logger: logger)) } catch { found.append(error) }
    apns.privateKey = "-----BEGIN PRIVATE KEY-----\n\(mark)\n-----END PRIVATE KEY-----"
    apns.keyID = mark
    do { _ = try APNsSender(apns, SenderResources(logger: logger)) } catch { found.append(error) }
    do { _ = try ServiceAccountKey(json: try TestKeys.serviceAccountFile(["private_key": mark])) } catch {
      found.append(error)
    }
    do { _ = try ServiceAccountKey(json: Array(#"{"private_key":"\#(mark)"#.utf8)) } catch { found.append(error) }
    let account = try ServiceAccountKey(
      json: try TestKeys.serviceAccountFile(["private_key_id": mark, "client_email": mark]))
    found += [account, FCMConfiguration(serviceAccount: account)]
    for flow in [
      WNSConfiguration.Flow.store(packageSID: mark, secret: mark),
      .entra(tenant: "t", applicationID: mark, secret: mark),
      .store(packageSID: "p", secret: mark + " "),
    ] {
      let wns = WNSConfiguration(flow: flow)
      found += [flow, wns, WNSTokenRequest(wns)]
      do { found.append(try WNSSender(wns, SenderResources(logger: logger)).readinessProblem as Any) } catch {
        found.append(error)
      }
    }
    let answer = TokenAnswer(
      status: 200, body: Array(#"{"access_token":"\#(mark)"}"#.utf8), retryAfter: nil, now: Fixtures.now)
    found.append(answer)
    found.append(
      TokenAnswer(status: 400, body: Array(#"{"error":"\#(mark)"}"#.utf8), retryAfter: nil, now: Fixtures.now))
    var tokens = AccessTokenState()
    tokens.fetched(answer, now: Fixtures.now)
    found.append(tokens)
    found.append(tokens.token as Any)
    var provider = ProviderTokenState()
    found.append(try provider.token(now: Fixtures.now) { _ in mark })
    found.append(provider)
    for body in [#"{"reason":"\#(mark)"}"#, #"{"error":{"status":"\#(mark)","message":"\#(mark)"}}"#, mark] {
      found.append(APNsAnswer(status: 400, body: Array(body.utf8), retryAfter: mark, now: Fixtures.now))
      found.append(
        FCMAnswer.outcome(
          status: 400, body: Array(body.utf8), retryAfter: mark, now: Fixtures.now, isPayloadProven: { true }))
    }
    found.append(
      WNSAnswer.outcome(
        status: 410, fields: .init(status: mark, description: mark, retryAfter: mark), appWorks: true, now: Fixtures.now
      ))
    do { _ = try APNsRenderer.render(Fixtures.send(Content.of(apns: Array(mark.utf8)))) } catch { found.append(error) }
    do { _ = try FCMRenderer.render(Fixtures.send(Content.of(fcm: Array(mark.utf8)))) } catch { found.append(error) }

    for value in found {
      var dumped = ""
      dump(value, to: &dumped)
      for text in ["\(value)", String(describing: value), String(reflecting: value), dumped] {
        #expect(!text.contains(mark), "\(type(of: value))")
      }
    }
  }
}
