import FanfareCore
import Foundation
import NIOHTTP1
import Registry
import Testing

@testable import AzureHub

/// Installations over a real socket.
struct InstallationRouteTests {
  @Test func installationIsReadAsSoonAsItIsWritten() async throws {
    try await AzureHarness.run { harness in
      let path = "/orders/installations/phone-1?api-version=2020-06"
      #expect(try await harness.request(.GET, path, as: .listen).status == 404)
      #expect(try await harness.request(.DELETE, path, as: .listen).status == 204)
      let written = try await harness.request(
        .PUT, path, as: .listen, headers: [("Content-Type", "application/json")], body: InstallationTests.body)
      #expect(written.status == 200 && written.text.isEmpty, "\(written.text)")
      #expect(written["Content-Location"] == "http://127.0.0.1:\(harness.port)\(path)")
      let read = try await harness.request(.GET, path, as: .listen)
      #expect(read.status == 200 && read["Content-Type"] == "application/json; charset=utf-8")
      let first = try InstallationDocument(Array(read.text.utf8)[...], id: "phone-1")
      #expect(first.user == "alice" && first.handle == "0A0B" && Set(first.templates.keys) == ["alerts", "My Name"])

      let patched = try await harness.request(
        .PATCH, path, as: .listen, headers: [("Content-Type", "application/json-patch+json")],
        body: """
          [{"op":"replace","path":"/pushChannel","value":"0C0D"},{"op":"add","path":"/tags","value":"sport"},
           {"op":"remove","path":"/templates/My Name"},{"op":"replace","path":"/userId","value":"bob"}]
          """)
      #expect(patched.status == 200, "\(patched.text)")
      let again = try InstallationDocument(
        Array(try await harness.request(.GET, path, as: .listen).text.utf8)[...], id: "phone-1")
      #expect(again.user == "bob" && again.handle == "0C0D" && again.tags.tags == ["news", "sport"])
      #expect(Set(again.templates.keys) == ["alerts"])
      // One registration without a template and one with it, as Azure materialises them.
      let rows = try await harness.request(.GET, "/orders/tags/$InstallationId:%7Bphone-1%7D/registrations", as: .full)
      #expect(try XMLTree(Array(rows.text.utf8)[...]).children.count { $0.name == "entry" } == 2, "\(rows.text)")

      let wrong = try await harness.request(
        .PATCH, path, as: .listen, body: #"[{"op":"add","path":"/platform","value":"wns"}]"#)
      #expect(wrong.status == 400 && wrong.text.contains("[0] /platform: this path cannot be changed"))
      #expect(try await harness.request(.DELETE, path, as: .listen).status == 204)
      #expect(try await harness.request(.GET, path, as: .listen).status == 404)
      let rest = try await harness.request(.GET, "/orders/registrations", as: .full)
      #expect(!rest.text.contains("<entry"), "\(rest.text)")
    }
  }
}
