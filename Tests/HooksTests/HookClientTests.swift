import FanfareCore
import Foundation
import NIOHTTP1
import Support
import Synchronization
import Testing

@testable import Hooks

/// Single requests, and the addresses to which they go.
@Suite(.timeLimit(.minutes(1))) struct HookClientTests {
  private let certificates: TestCertificates

  init() throws { certificates = try TestCertificates() }

  private func client(
    of receiver: Receiver, timeout: Duration = .seconds(10), lookUp: @escaping HostLookUp.Function
  ) throws -> HookClient {
    var hook = HookConfiguration(name: "audit", url: try #require(HookURL(receiver.url)), hubs: [.default])
    hook.allowsPrivate = true
    hook.trustRoots = certificates.authorityPEM
    hook.timeout = timeout
    let secrets = try #require(WebhookSecrets("whsec_" + Data(repeating: 7, count: 32).base64EncodedString()))
    return try HookClient(hook, secrets: secrets, addressLifetime: .zero, lookUp: lookUp)
  }

  private func post(_ client: HookClient) async -> HookAnswer {
    await client.post(Array("[]".utf8), id: "msg_1", at: ManualClock().now())
  }

  @Test func addressesInChangingOrderKeepTheConnection() async throws {
    let receiver = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .ok) }
    let address = try receiver.address
    let turns = Mutex(0)
    let client = try client(of: receiver) { _ in
      let turn = turns.withLock { turns in
        turns += 1
        return turns
      }
      return turn.isMultiple(of: 2) ? ["192.0.2.1", address] : [address, "192.0.2.1"]
    }
    for _ in 0..<4 { #expect(await post(client) == .delivered) }
    #expect(turns.withLock { $0 } == 4)
    #expect(receiver.connections == 1)
    await client.close()
    try await receiver.close()
  }

  @Test func addressThatDoesNotAnswerIsFollowedByTheNext() async throws {
    let receiver = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .ok) }
    let address = try receiver.address
    // Nothing listens at that port of the other loopback address.
    let other = address == "127.0.0.1" ? "127.0.0.2" : "127.0.0.1"
    let client = try client(of: receiver) { _ in [other, address] }
    guard case .failed = await post(client) else { throw Unexpected() }
    for _ in 0..<2 { #expect(await post(client) == .delivered) }
    await client.close()
    try await receiver.close()
  }

  @Test func lookUpEndsWithTheTimeLimitOfTheRequest() async throws {
    let receiver = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .ok) }
    let (address, release) = (try receiver.address, DispatchSemaphore(value: 0))
    let client = try client(of: receiver, timeout: .milliseconds(20)) { _ in
      release.wait()
      return [address]
    }
    // Returns while the name server is silent.
    for _ in 0..<2 {
      #expect(await post(client) == .failed(problem: "the receiver did not answer in time", retryAfter: nil))
    }
    for _ in 0..<2 { release.signal() }
    await client.close()
    try await receiver.close()
  }

  @Test func nameWithoutAddressIsAFailure() async throws {
    let receiver = try await Receiver(certificates) { _, _ in Receiver.Answer(status: .ok) }
    let client = try client(of: receiver) { _ in throw IPAddress.Unknown() }
    guard case .failed(let problem, nil) = await post(client) else { throw Unexpected() }
    #expect(problem.contains("no address"))
    await client.close()
    try await receiver.close()
  }

  @Test func systemKnowsTheAddressesOfALocalName() throws {
    #expect(try IPAddress.addresses(of: "localhost").allSatisfy { ["127.0.0.1", "::1"].contains($0) })
    #expect(try IPAddress.addresses(of: "192.0.2.7") == ["192.0.2.7"])
    #expect(throws: IPAddress.Unknown.self) { try IPAddress.addresses(of: "name.invalid") }
  }

  private struct Unexpected: Error {}
}
