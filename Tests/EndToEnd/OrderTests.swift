import Foundation
import Testing

@testable import fanfare_dev

/// Sends of one user reach the device in the order of acceptance, while many other sends run in parallel.
@Suite(.timeLimit(.minutes(3))) struct OrderTests {
  private static let users = 50
  private static let sendsPerUser = 200

  @Test func sendsOfUserArriveInOrderOfAcceptance() async throws {
    try await Deployment.with { deployment in
      let workers = [try deployment.startWorker(), try deployment.startWorker()]
      let api = try await deployment.startFrontEnd()
      func token(_ user: Int) -> String { String(repeating: "b", count: 62) + String(user + 16, radix: 16) }
      for user in 0..<Self.users {
        let body = #"{"platform":"ios","instId":"phone-\#(user)","deviceToken":"\#(token(user))"}"#
        #expect(try await api.call("POST", "/api/register", user: "user-\(user)", body: body).status == 200)
      }
      for worker in workers { _ = try await deployment.ready(worker) }
      // The simulator keeps the last fifty notifications of a device.
      for first in stride(from: 0, to: Self.sendsPerUser, by: 50) {
        try await post(first..<first + 50, to: api)
        try await deployment.arrived(Self.users * (first + 50), within: .seconds(60))
        for user in 0..<Self.users {
          let numbers = try await deployment.arrivals("apns", token(user)).compactMap { payload -> Int? in
            let alert = ((payload as? [String: Any])?["aps"] as? [String: Any])?["alert"] as? [String: Any]
            return (alert?["body"] as? String).flatMap { Int($0) }
          }
          #expect(numbers == Array(first..<first + 50))
        }
      }
    }
  }

  /// Posts rounds, two in each request. A round is one send to every user, with the round's number as its text.
  private func post(_ rounds: Range<Int>, to api: Caller) async throws {
    for first in stride(from: rounds.lowerBound, to: rounds.upperBound, by: 2) {
      let lines = (0..<2 * Self.users).map { line in
        #"{"to":{"user":"user-\#(line % Self.users)"},"message":{"body":"\#(first + line / Self.users)"}}"#
      }
      let answer = try await api.call(
        "POST", "/api/sends/batch", user: "sender", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
      #expect(answer.status == 200)
    }
  }
}
