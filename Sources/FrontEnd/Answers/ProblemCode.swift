import HTTPTypes
import Logging

/// Every way in which a request can fail, as the stable word that stands in a problem's `code` and in the label of a
/// metric.
enum ProblemCode: String, CaseIterable, Sendable {
  /// The bytes are not HTTP, or a header is not what its name promises.
  case malformedRequest
  /// The body is not UTF-8, not JSON, or is missing.
  case malformedBody
  /// A member of the body is missing, unknown, twice there, of the wrong type or out of range; the detail names it.
  case invalidField
  /// A query parameter is missing, twice there or has no possible value; the detail names it.
  case invalidParameter
  /// No credentials, or ones that are not accepted.
  case unauthenticated
  /// Known, and not allowed to do this.
  case forbidden
  /// No such route, hub or thing, or none that this caller may see.
  case notFound
  /// The path exists, the method on it does not.
  case methodNotAllowed
  /// The body did not arrive in time.
  case requestTimeout
  /// It belongs to somebody else, or is not what the request supposes it to be.
  case conflict
  /// The `Idempotency-Key` was given before, with another request.
  case keyReused
  /// The send has ended, or its broadcast was cancelled: nothing about it can be changed any more.
  case alreadyEnded
  /// The send is none that can be paused, resumed or cancelled.
  case notSteerable
  /// The registration id is dead, or not the caller's to use: ask for a new one.
  case gone
  /// The body, a line of a batch, or the record made of it, is larger than it may be.
  case tooLarge
  /// The body is announced as something else than what the route takes.
  case unsupportedMediaType
  /// Well-formed, and yet nothing could ever come of it.
  case impossible
  /// The header section is larger than it may be.
  case headersTooLarge
  /// The sender has posted more than its quota.
  case overQuota
  /// More work is waiting than the server may hold.
  case overloaded
  /// Kafka has certainly not taken it.
  case kafkaUnavailable
  /// Kafka or the registry has not confirmed it in time: it may have been taken all the same.
  case outcomeUnknown
  /// The registry cannot be asked now.
  case registryUnavailable
  /// What happened to sends cannot be looked up now.
  case historyUnavailable
  /// Passwords cannot be checked now.
  case authenticationUnavailable
  /// A mistake of the server's.
  case internalError
}

extension ProblemCode {
  /// What the outside sees of a failure, and how loudly it is logged.
  struct Appearance {
    let status: HTTPResponse.Status
    let title: String
    /// Seconds after which the same request may succeed, for the `Retry-After` field.
    var retryAfter: Int?
    let logLevel: Logger.Level

    init(_ status: HTTPResponse.Status, _ title: String, retryAfter: Int? = nil, log: Logger.Level = .debug) {
      self.status = status
      self.title = title
      self.retryAfter = retryAfter
      logLevel = log
    }
  }

  /// The one table of failures.
  var appearance: Appearance {
    switch self {
    case .malformedRequest: Appearance(.badRequest, "Malformed request")
    case .malformedBody: Appearance(.badRequest, "Malformed body")
    case .invalidField: Appearance(.badRequest, "Invalid field")
    case .invalidParameter: Appearance(.badRequest, "Invalid query parameter")
    case .unauthenticated: Appearance(.unauthorized, "Authentication required")
    case .forbidden: Appearance(.forbidden, "Not allowed")
    case .notFound: Appearance(.notFound, "Not found")
    case .methodNotAllowed: Appearance(.methodNotAllowed, "Method not allowed")
    case .requestTimeout: Appearance(.requestTimeout, "Request took too long")
    case .conflict: Appearance(.conflict, "Conflict")
    case .keyReused: Appearance(.conflict, "Key used for another request")
    case .alreadyEnded: Appearance(.conflict, "Has ended already")
    case .notSteerable: Appearance(.conflict, "Cannot be steered")
    case .gone: Appearance(.gone, "Registration is gone")
    case .tooLarge: Appearance(.contentTooLarge, "Too large")
    case .unsupportedMediaType: Appearance(.unsupportedMediaType, "Unsupported media type")
    case .impossible: Appearance(.unprocessableContent, "Impossible request")
    case .headersTooLarge: Appearance(.requestHeaderFieldsTooLarge, "Header fields too large")
    case .overQuota: Appearance(.tooManyRequests, "Over quota", retryAfter: 1)
    case .overloaded: Appearance(.serviceUnavailable, "Overloaded", retryAfter: 1, log: .info)
    case .kafkaUnavailable: Appearance(.serviceUnavailable, "Not accepted", retryAfter: 5, log: .warning)
    case .outcomeUnknown: Appearance(.serviceUnavailable, "Not confirmed", retryAfter: 5, log: .warning)
    case .registryUnavailable: Appearance(.serviceUnavailable, "Registry unavailable", retryAfter: 2, log: .warning)
    case .historyUnavailable: Appearance(.serviceUnavailable, "History unavailable", retryAfter: 2, log: .warning)
    case .authenticationUnavailable:
      Appearance(.serviceUnavailable, "Authentication unavailable", retryAfter: 2, log: .warning)
    case .internalError: Appearance(.internalServerError, "Internal error", log: .error)
    }
  }
}
