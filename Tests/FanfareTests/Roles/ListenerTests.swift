import Foundation
import SettingsTable
import Testing

@testable import Roles

@Suite struct ListenerTests {
  @Test func unavailablePortIsNamedByItsKey() {
    #expect(
      Listener.refusal(of: "api.port", code: EACCES)?.description == "api.port cannot be listened on: permission denied"
    )
    #expect(
      Listener.refusal(of: "operations.port", code: EADDRINUSE)?.description
        == "operations.port is taken by another process"
    )
    #expect(Listener.refusal(of: "api.port", code: ECONNRESET) == nil)
  }

  @Test(arguments: [("::1", "[::1]:8080"), ("127.0.0.1", "127.0.0.1:8080"), ("localhost", "localhost:8080")])
  func addressIsAnnouncedAsInURLs(host: String, address: String) {
    #expect(Announcement.address(host: host, port: 8080) == address)
  }
}
