import Foundation
import Testing

@testable import fanfare_dev

@Suite struct SinkTests {
  /// nghttpd before nghttp2 1.60 answers through one function, later versions through the other. Only one version is
  /// installed here.
  @Test(
    .timeLimit(.minutes(1)), .enabled(if: ChildProcess.find("clang") != nil),
    arguments: ["nghttp2_submit_response", "nghttp2_submit_response2"])
  func everyAnswerIsMadeA200AndCounted(function: String) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: directory) }  // A failure leaves only a temporary directory.
    let declaration =
      "int \(function)(void *session, int stream, const void *fields, unsigned long count, const void *body)"
    // The parts of the library and the server that matter here: one answer, 404 with a body.
    let library = """
      #include <string.h>
      struct field { const char *name, *value; unsigned long name_length, value_length; };
      \(declaration) {
        const struct field *field = fields;
        return session || stream != 5 || count != 1 || body || memcmp(field->name, ":status", 7)
          || memcmp(field->value, "200", 3);
      }
      """
    let server = "\(declaration); int main(void) { return \(function)(0, 5, 0, 2, \"body\"); }"
    try Data(library.utf8).write(to: directory.appending(path: "library.c"))
    try Data(server.utf8).write(to: directory.appending(path: "server.c"))
    try await run(["-shared", "-fPIC", "library.c", "-o", "libanswers.so"], in: directory)
    try await run(["server.c", "./libanswers.so", "-o", "server"], in: directory)
    let count = directory.appending(path: "count")
    let sink = ChildProcess.workshop.deletingLastPathComponent().appending(path: "libPushSink.so")
    let process = try ChildProcess(
      [], name: "server", environment: ["LD_PRELOAD": sink.path, "FANFARE_SINK_COUNT": count.path],
      program: directory.appending(path: "server"), directory: directory)
    #expect(try await process.exitStatus() == 0)
    #expect(try Data(contentsOf: count).map(Int.init).reduce(0, +) == 1)
  }

  private func run(_ arguments: [String], in directory: URL) async throws {
    let clang = try #require(ChildProcess.find("clang"))
    let process = try ChildProcess(arguments, name: "clang", program: clang, directory: directory)
    #expect(try await process.exitStatus() == 0, "\(process.lastWords)")
  }
}
