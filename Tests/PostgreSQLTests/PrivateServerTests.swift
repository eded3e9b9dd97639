import PostgreSQL
import PrivatePostgreSQL
import Testing

@Suite(.enabled(if: PrivateServer.programs != nil, "PostgreSQL is not installed"), .timeLimit(.minutes(2)))
struct PrivateServerTests {
  @Test func aServerThatDoesNotStartIsToldOf() {
    let failure = #expect(throws: PrivateServer.Failure.self) { try PrivateServer(settings: ["nonsense": "1"]) }
    #expect(failure?.description.contains("nonsense") == true, "its log says why")
  }
}
