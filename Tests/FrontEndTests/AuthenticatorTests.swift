import FanfareCore
import Foundation
import Testing

@testable import FrontEnd

@Suite struct AuthenticatorTests {
  @Test func demoAuthenticatorRefusesToServeOtherMachinesUnlessAllowed() throws {
    for host in ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LOCALHOST"] {
      _ = try DemoAuthenticator(boundTo: host)
    }
    for host in [
      "0.0.0.0", "::", "", "192.168.1.1", "127.0.0.1.example.com", "127.0.0", "127.0.0.256", "localhost.example.com",
      "128.0.0.1",
      "::ffff:1.2.3.4",
      " 127.0.0.1",
    ] {
      let error = #expect(throws: FrontEndError.self) { try DemoAuthenticator(boundTo: host) }
      #expect(error?.code == .insecureAuthentication)
      _ = try DemoAuthenticator(boundTo: host, allowRemote: true)
    }
  }

  @Test func demoAuthenticatorAcceptsPasswordEqualToName() async throws {
    // Unicode-equivalent, but a different user.
    #expect(RolePolicy(operators: ["zo\u{eb}"]).roles(of: "zoe\u{308}") == [.device, .sender])
    #expect(RolePolicy(exceptions: ["zo\u{eb}": []]).roles(of: "zoe\u{308}") == [.device, .sender])
    let authenticator = try DemoAuthenticator(boundTo: "127.0.0.1", roles: Harness.roles)
    for (user, password, roles) in [
      ("alice", "alice", [.device, .sender]), ("opal", "opal", [.device, .sender, .operator]),
      ("devon", "devon", [.device]),
      ("alice", "Alice", nil), ("alice", "", nil), ("alice", "alice ", nil),
    ] as [(String, String, Set<Role>?)] {
      let credentials = try #require(BasicCredentials(user: user, password: password))
      #expect(try await authenticator.authenticate(credentials, hub: .default)?.roles == roles)
    }
  }

  @Test func basicCredentialsAreSplitAtTheFirstColon() {
    func read(_ text: String) -> BasicCredentials? {
      BasicCredentials("Basic " + Data(text.utf8).base64EncodedString())
    }
    #expect(read("a:b:c") == BasicCredentials(user: "a", password: "b:c"))
    #expect(read("René:") == BasicCredentials(user: "René", password: ""))
    for wrong in [
      "", "a", ":b", "a\n:b", "a:b\u{0}c", "a:" + String(repeating: "x", count: 512),
      String(repeating: "x", count: 112) + ":",
    ] {
      #expect(read(wrong) == nil)
    }
    #expect("\(String(describing: read("alice:secret")))".contains("secret") == false)
    #expect("\(String(describing: read("alice:secret")))".contains("alice") == false)
  }
}
