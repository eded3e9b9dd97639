import AsyncHTTPClient
import FanfareCore
import Logging
import NIOCore
import NIOHTTP1

/// Asks one token endpoint.
struct TokenClient: Sendable {
  /// A field of a form.
  typealias Field = (name: String, value: String)

  /// The most bytes of an answer: a token and little else.
  private static let maximumAnswerBytes = 64 * 1024

  let client: HTTPClient
  let url: String
  let timeout: Duration
  let clock: any WallClock
  let logger: Logger

  /// Posts a form and reads the answer. Whatever goes wrong on the way is an endpoint that is unavailable.
  func post(_ form: [Field]) async -> TokenAnswer {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.headers.add(name: "content-type", value: "application/x-www-form-urlencoded")
    request.headers.add(name: "accept", value: "application/json")
    request.body = .bytes(ByteBuffer(bytes: Self.encode(form)))
    do { return try await answer(to: request) } catch {
      logger.warning("token endpoint not reached", metadata: [LogKeys.error: "\(error)"])
      return .unavailable(status: 0, retryAfter: nil)
    }
  }

  /// The answer, whole. The client's own limit ends with the head, and a body may never end: so the whole exchange has
  /// one.
  private func answer(to request: HTTPClientRequest) async throws -> TokenAnswer {
    try await withThrowingTaskGroup(of: TokenAnswer.self) { group in
      group.addTask {
        let response = try await client.execute(request, timeout: TimeAmount(timeout))
        let body = try await response.body.collect(upTo: Self.maximumAnswerBytes)
        return TokenAnswer(
          status: Int(response.status.code), body: Array(body.readableBytesView),
          retryAfter: response.headers.first(name: "retry-after"), now: clock.now())
      }
      group.addTask {
        try await Task.sleep(for: timeout)
        throw HTTPClientError.deadlineExceeded
      }
      defer { group.cancelAll() }
      guard let answer = try await group.next() else { throw HTTPClientError.cancelled }
      return answer
    }
  }

  /// `application/x-www-form-urlencoded`: everything escaped but what is unreserved in a URI.
  static func encode(_ form: [Field]) -> [UInt8] {
    // In upper case, as RFC 3986 §2.1 wants them.
    let digits = Array("0123456789ABCDEF".utf8)
    var output: [UInt8] = []
    func append(_ text: String) {
      for byte in text.utf8 {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
          output.append(byte)
        default:
          output.append(UInt8(ascii: "%"))
          output.append(digits[Int(byte >> 4)])
          output.append(digits[Int(byte & 0xF)])
        }
      }
    }
    for field in form {
      if !output.isEmpty { output.append(UInt8(ascii: "&")) }
      append(field.name)
      output.append(UInt8(ascii: "="))
      append(field.value)
    }
    return output
  }
}
