import Foundation
import Roles

/// A request that the HTTP API did not carry out. Contains no credentials.
struct APIRefusal: WordedError, Hashable {
  let status: Int
  /// The problem's code; nil if the answer was none of Fanfare's.
  let code: String?
  let detail: String
  let requestID: String?
  /// Seconds after which the request may succeed.
  let retryAfter: Int?

  private struct Problem: Decodable {
    let code: String
    let detail: String
    let requestId: String?
  }

  init(status: Int, body: Data, retryAfter: Int?) {
    (self.status, self.retryAfter) = (status, retryAfter)
    do {
      let problem = try JSONDecoder().decode(Problem.self, from: body)
      (code, detail, requestID) = (problem.code, problem.detail, problem.requestId)
    } catch {
      // A proxy in between answers in its own form.
      (code, requestID) = (nil, nil)
      detail = "the answer is none of Fanfare's; is the address that of `fanfare api`?"
    }
  }

  /// Whether the request may have been carried out.
  var isOutcomeUnknown: Bool { code == "outcomeUnknown" || (code == nil && status >= 500) }

  var description: String {
    let lines = [
      "the request was refused: \(detail) (\(status)\(code.map { " \($0)" } ?? ""))", hint,
      retryAfter.map { "try again in \($0) s" },
    ]
    return lines.compactMap(\.self).joined(separator: "; ")
  }

  /// The advice to the caller.
  private var hint: String? {
    switch code {
    case "unauthenticated": "check key, or user and password, of the profile (FANFARE_KEY, FANFARE_USER), and --hub"
    case "forbidden":
      "an operator grants scopes: `fanfare keys create --user NAME --scope SCOPE`, or hub.NAME.authentication.grants"
    case "keyReused": "use another --idempotency-key for another send"
    default: nil
    }
  }
}

/// The HTTP API could not be reached.
struct APIUnreachable: WordedError {
  let description: String

  init(_ url: String, _ error: any Error) {
    description = "\(url) (url of the profile, FANFARE_URL) cannot be used: \(ErrorWords.text(error))"
  }
}
