import Foundation
import Testing

@testable import FrontEnd

/// The files that are embedded in the program, and the page that shows the OpenAPI document.
@Suite(.timeLimit(.minutes(1))) struct StaticFileTests {
  @Test func filesAreServedWithoutCredentialsUnderAStrictPolicy() async throws {
    try await Harness.run { app in
      for (path, type) in [
        ("/docs", "text/html; charset=utf-8"), ("/docs/page.css", "text/css; charset=utf-8"),
        ("/docs/page.js", "text/javascript; charset=utf-8"), ("/openapi.json", "application/json"),
      ] {
        let reply = try await app.request(.get, path, as: nil)
        #expect(reply.status == 200 && reply["Content-Type"] == type && !reply.body.isEmpty, "\(path)")
        #expect(reply["X-Content-Type-Options"] == "nosniff" && reply["Referrer-Policy"] == "no-referrer", "\(path)")
        #expect(
          reply["Content-Security-Policy"]
            == "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
            + "base-uri 'none'; form-action 'self'; frame-ancestors 'none'", "\(path)")
        #expect(reply["Cache-Control"] == "no-cache", "\(path)")
        let head = try await app.request(.head, path, as: nil)
        #expect(head.status == 200 && head.body.isEmpty && head["ETag"] == reply["ETag"], "\(path)")
        let mark = try #require(reply["ETag"])
        let again = try await app.request(.get, path, as: nil, headers: [("If-None-Match", mark)])
        #expect(again.status == 304 && again.body.isEmpty, "\(path)")
      }
    }
  }

  @Test func differentFilesHaveDifferentEntityTags() async throws {
    try await Harness.run { app in
      var marks: Set<String?> = []
      for path in Description.files.keys { marks.insert(try await app.request(.get, "/\(path)", as: nil)["ETag"]) }
      #expect(marks.count == Description.files.count)
    }
  }

  /// The policy forbids inline scripts and styles, and other hosts; the page must not need them.
  @Test func pageRefersOnlyToFilesOfThisServer() throws {
    let page = String(decoding: PackageResources.docs_html, as: UTF8.self)
    let script = String(decoding: PackageResources.docs_js, as: UTF8.self)
    let style = String(decoding: PackageResources.docs_css, as: UTF8.self)
    let links = page.matches(of: /(?:href|src)="([^"]*)"/).map { String($0.output.1) }
    let served = Set(Description.files.keys.map { "/\($0)" })
    #expect(links.contains("/docs/page.css") && links.contains("/docs/page.js"))
    for link in links where !link.hasPrefix("#") && link != "data:," { #expect(served.contains(link), "\(link)") }
    #expect(page.firstMatch(of: /<style|style=|\son[a-z]+=|<script>|javascript:/) == nil)
    for text in [page, script, style] { #expect(text.firstMatch(of: /https?:|\/\/[a-z]+\.[a-z]/) == nil) }
    #expect(style.firstMatch(of: /@import|url\(/) == nil)
    // Texts of the document never become markup.
    #expect(script.firstMatch(of: /innerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/) == nil)
    #expect(script.matches(of: /fetch\(([^)]*)\)/).map { String($0.output.1) } == ["\"/openapi.json\""])
  }
}
