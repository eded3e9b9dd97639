import FanfareCore
import Foundation
import Testing

@testable import fanfare

/// The pieces of `fanfare azure import`.
@Suite struct AzureImportTests {
  @Test func connectionStringIsRead() throws {
    let connection = try AzureConnection(
      "Endpoint=sb://ns.example.com/;SharedAccessKeyName=Full;SharedAccessKey=a=b==;EntityPath=shop\n")
    #expect(connection.base == "https://ns.example.com" && connection.rule == "Full" && connection.hub == "shop")
    #expect(!"\(connection)".contains("a=b") && !String(reflecting: connection).contains("a=b"))
    // Computed with openssl dgst -sha256 -hmac.
    let token = connection.authorization(for: "Shop", at: Date(timeIntervalSince1970: 1_000_000_000))
    #expect(token.hasPrefix("SharedAccessSignature sr=https%3a%2f%2fns.example.com%2fshop&sig="))
    #expect(token.contains("&sig=1Qx7ajqigqQwI48UzPbl5jY2B6YVtXdcT6hMemYLCGI%3d&se=1000003600&skn=Full"), "\(token)")
    let local = try AzureConnection("Endpoint=http://127.0.0.1:8080/;SharedAccessKeyName=F;SharedAccessKey=k")
    #expect(local.base == "http://127.0.0.1:8080" && local.hub == nil)
    // As `fanfare azure connection-string` prints it with azure.prefix.
    let prefixed = try AzureConnection("Endpoint=sb://push.example.com/anh/v1/;SharedAccessKeyName=F;SharedAccessKey=k")
    #expect(prefixed.base == "https://push.example.com/anh/v1")
    #expect(
      prefixed.authorization(for: "Shop", at: Date())
        .hasPrefix("SharedAccessSignature sr=https%3a%2f%2fpush.example.com%2fanh%2fv1%2fshop&"))
  }

  @Test(arguments: [
    "", "Endpoint=sb://h/;SharedAccessKeyName=F", "Endpoint=sb://h/;SharedAccessKey=secret;SharedAccessKeyName=",
    "Endpoint=http://ns.example.com/;SharedAccessKeyName=F;SharedAccessKey=secret",
    "Endpoint=ftp://h/;SharedAccessKeyName=F;SharedAccessKey=secret", "secret",
  ])
  func badConnectionStringIsRefused(text: String) {
    let error = #expect(throws: AzureConnection.Invalid.self) { try AzureConnection(text) }
    #expect(error.map { !"\($0)".contains("secret") } == true)
  }

  private func withSpool(_ body: (String) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "spool-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }  // A leftover does no harm.
    try body(directory.appending(path: "spool").path)
  }

  @Test func spoolContinuesAfterTheLastNotedPiece() throws {
    try withSpool { path in
      let time = UnixTime(milliseconds: 1_893_553_445_678)
      var first = try RegistrationSpool(path: path, source: "a", asOf: time)
      try first.append(Array("one\n".utf8), count: 1, skipped: 2, continuation: "next")
      // A crash between the lines and the note.
      let torn = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try torn.seekToEnd()
      try torn.write(contentsOf: Data("to".utf8))
      var second = try RegistrationSpool(path: path, source: "a")
      // The lines of all attempts are of one moment.
      #expect(second.place.time == time)
      #expect(throws: RegistrationSpool.Unusable.self) {
        try RegistrationSpool(path: path, source: "a", asOf: time + .seconds(1))
      }
      #expect(second.place.continuation == "next" && second.place.count == 1 && second.place.skipped == 2)
      try second.append(Array("two\n".utf8), count: 1, skipped: 0, continuation: nil)
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "one\ntwo\n" && second.place.isComplete)
      #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
      #expect(throws: RegistrationSpool.Unusable.self) { try RegistrationSpool(path: path, source: "b") }
      try second.delete()
      #expect(try FileManager.default.contentsOfDirectory(atPath: (path as NSString).deletingLastPathComponent).isEmpty)
    }
  }

  @Test func otherFileIsNotOverwritten() throws {
    try withSpool { path in
      try Data("mine".utf8).write(to: URL(fileURLWithPath: path))
      #expect(throws: RegistrationSpool.Unusable.self) { try RegistrationSpool(path: path, source: "a") }
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
    }
  }
}
