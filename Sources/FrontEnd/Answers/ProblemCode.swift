import HTTPTypes
import Logging

/// The kinds of failure of a request.
/// The raw value is a problem's `code` and the label of a metric, and never changes.
enum ProblemCode: String, CaseIterable, Sendable {
  /// The request is not HTTP, or a header field is malformed.
  case malformedRequest
  /// The body is missing, not UTF-8, or not JSON.
  case malformedBody
  /// A member of the body is missing, unknown, repeated, of the wrong type or out of range.
  case invalidField
  /// A query parameter is missing, unknown, repeated or invalid.
  case invalidParameter
  /// The credentials are missing or wrong.
  case unauthenticated
  /// The caller is known but lacks the role or the right.
  case forbidden
  /// The route, hub or object does not exist, or this caller may not see it.
  case notFound
  /// The path exists but does not have the method.
  case methodNotAllowed
  /// The body did not arrive in time.
  case requestTimeout
  /// The object is not in the state that the request assumes.
  case conflict
  /// The `Idempotency-Key` was used for another request.
  case keyReused
  /// The send has ended or was cancelled.
  case alreadyEnded
  /// The send cannot be paused, resumed or cancelled.
  case notSteerable
  /// The registration id is not alive, or belongs to another user. The app must ask for a new one.
  case gone
  /// The body, a line of a batch, or the record made of it exceeds its limit.
  case tooLarge
  /// The body's media type is not one that the route accepts.
  case unsupportedMediaType
  /// The request is well-formed but can have no effect.
  case impossible
  /// The header section exceeds its limit.
  case headersTooLarge
  /// The sender exceeded its quota.
  case overQuota
  /// Too much work is waiting.
  case overloaded
  /// Kafka definitely did not accept the send.
  case kafkaUnavailable
  /// Kafka or the registry did not confirm the request in time. It may have been carried out.
  case outcomeUnknown
  /// The registry is unavailable.
  case registryUnavailable
  /// The history of sends is unavailable.
  case historyUnavailable
  /// Credentials cannot be checked.
  case authenticationUnavailable
  /// A defect of the server.
  case internalError
}

extension ProblemCode {
  /// How a failure is answered and logged.
  struct Answer {
    let status: HTTPResponse.Status
    let title: String
    /// The value of the `Retry-After` field, in seconds.
    let retryAfter: Int?
    let logLevel: Logger.Level

    init(_ status: HTTPResponse.Status, _ title: String, retryAfter: Int? = nil, log: Logger.Level = .debug) {
      self.status = status
      self.title = title
      self.retryAfter = retryAfter
      logLevel = log
    }
  }

  /// The answer to each kind of failure.
  var answer: Answer {
    switch self {
    case .malformedRequest: Answer(.badRequest, "Malformed request")
    case .malformedBody: Answer(.badRequest, "Malformed body")
    case .invalidField: Answer(.badRequest, "Invalid field")
    case .invalidParameter: Answer(.badRequest, "Invalid query parameter")
    case .unauthenticated: Answer(.unauthorized, "Authentication required")
    case .forbidden: Answer(.forbidden, "Not allowed")
    case .notFound: Answer(.notFound, "Not found")
    case .methodNotAllowed: Answer(.methodNotAllowed, "Method not allowed")
    case .requestTimeout: Answer(.requestTimeout, "Request took too long")
    case .conflict: Answer(.conflict, "Conflict")
    case .keyReused: Answer(.conflict, "Key used for another request")
    case .alreadyEnded: Answer(.conflict, "Has ended already")
    case .notSteerable: Answer(.conflict, "Cannot be steered")
    case .gone: Answer(.gone, "Registration is gone")
    case .tooLarge: Answer(.contentTooLarge, "Too large")
    case .unsupportedMediaType: Answer(.unsupportedMediaType, "Unsupported media type")
    case .impossible: Answer(.unprocessableContent, "Impossible request")
    case .headersTooLarge: Answer(.requestHeaderFieldsTooLarge, "Header fields too large")
    case .overQuota: Answer(.tooManyRequests, "Over quota", retryAfter: 1)
    case .overloaded: Answer(.serviceUnavailable, "Overloaded", retryAfter: 1, log: .info)
    case .kafkaUnavailable: Answer(.serviceUnavailable, "Not accepted", retryAfter: 5, log: .warning)
    case .outcomeUnknown: Answer(.serviceUnavailable, "Not confirmed", retryAfter: 5, log: .warning)
    case .registryUnavailable: Answer(.serviceUnavailable, "Registry unavailable", retryAfter: 2, log: .warning)
    case .historyUnavailable: Answer(.serviceUnavailable, "History unavailable", retryAfter: 2, log: .warning)
    case .authenticationUnavailable:
      Answer(.serviceUnavailable, "Authentication unavailable", retryAfter: 2, log: .warning)
    case .internalError: Answer(.internalServerError, "Internal error", log: .error)
    }
  }
}
