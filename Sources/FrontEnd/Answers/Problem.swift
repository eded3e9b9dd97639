package import FanfareCore
import HTTPServer
package import HTTPTypes
import Logging
import RDKafka

/// The answer to a request that failed: a problem document (RFC 9457).
struct Problem {
  static let mediaType = "application/problem+json"

  let refusal: Refusal
  let requestID: String

  /// The standard's members, `code`, `requestId`, of a refusal over a quota its name, and of an interrupted request the
  /// cursor that continues.
  var document: [UInt8] {
    let (code, answer) = (refusal.code.rawValue, refusal.code.answer)
    return JSONWriter.object {
      $0.member("type", "urn:fanfare:problem:" + code)
      $0.member("title", answer.title)
      $0.member("status", answer.status.code)
      $0.member("detail", refusal.detail)
      $0.member("code", code)
      if let quota = refusal.quota { $0.member("quota", quota.rawValue) }
      if let next = refusal.next { $0.member("next", next) }
      $0.member("requestId", requestID)
    }
  }

  /// Only `status` and `code`.
  var abbreviation: [UInt8] {
    JSONWriter.object {
      $0.member("status", refusal.code.answer.status.code)
      $0.member("code", refusal.code.rawValue)
    }
  }

  /// `Content-Type`, `Cache-Control`, and the header fields that the status requires.
  var headers: HTTPFields {
    var fields: HTTPFields = [.contentType: Self.mediaType, .cacheControl: "no-store"]
    if let seconds = refusal.secondsToRetry { fields[.retryAfter] = String(seconds) }
    switch refusal.code {
    // A field for each challenge: few clients can split a list of them.
    case .unauthenticated: fields[values: .wwwAuthenticate] = refusal.challenges
    // RFC 9110 §15.5.16.
    case .unsupportedMediaType: fields[.acceptEncoding] = "identity"
    case .methodNotAllowed: fields[.allow] = refusal.allowedMethods.map(\.rawValue).joined(separator: ", ")
    default: break
    }
    return fields
  }

  /// The complete answer.
  var answer: Answer { Answer(status: refusal.status, headers: headers, body: document) }
}

/// The kinds of failure of a request.
/// The raw value is a problem's `code` and the label of a metric, and never changes.
package enum ProblemCode: String, CaseIterable, Sendable {
  /// The request is not HTTP, or a header field is malformed.
  case malformedRequest
  /// The body is missing, not UTF-8, or not JSON.
  case malformedBody
  /// A member of the body is missing, unknown, repeated, of the wrong type or out of range.
  case invalidField
  /// A query parameter is missing, unknown, repeated or invalid.
  case invalidParameter
  /// The credentials are missing or wrong, or the hub does not exist.
  case unauthenticated
  /// The caller is known but lacks the scope or the right.
  case forbidden
  /// The route or object does not exist, or this caller may not see it.
  case notFound
  /// The path exists but does not have the method.
  case methodNotAllowed
  /// The method or the transfer coding is not one that the server knows.
  case notImplemented
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
  /// The caller exceeded one of its quotas.
  case overQuota
  /// Too many logins have failed.
  case tooManyFailures
  /// Too much work is waiting.
  case overloaded
  /// Kafka definitely did not accept the send, or cannot be read.
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
  /// Whether the request was refused because of its own content.
  var isOfContent: Bool {
    switch self {
    case .malformedRequest, .malformedBody, .invalidField, .invalidParameter, .tooLarge, .unsupportedMediaType,
      .impossible:
      true
    default: false
    }
  }

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
    case .notImplemented: Answer(.notImplemented, "Not implemented")
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
    case .tooManyFailures: Answer(.tooManyRequests, "Too many failed logins", retryAfter: 60)
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

/// Why one request, or one line of a batch, failed.
///
/// The detail names the field, parameter or limit. It never contains a value from the request, because it is sent to
/// the caller and may be logged.
package struct Refusal: Error, Hashable, CustomStringConvertible {
  package let code: ProblemCode
  package let detail: String
  /// For `.unauthenticated`: the challenges of all authenticators.
  var challenges: [String] = []
  /// For `.methodNotAllowed`: the methods that the path has.
  package var allowedMethods: [HTTPRequest.Method] = []
  /// Seconds after which the same request may succeed; overrides the default of the code.
  package var retryAfter: Int?
  /// For `.overQuota` and `.tooManyFailures`: the quota.
  var quota: QuotaName?
  /// Of an interrupted request: the cursor of the request that continues.
  var next: String?
  /// Whether callers can bring it about at will. It is then logged at `debug` only.
  var isCausedByCaller = false

  package init(_ code: ProblemCode, _ detail: String) {
    self.code = code
    self.detail = detail
  }

  package var description: String { "\(code.rawValue): \(detail)" }

  /// The status of the answer, and the seconds after which the same request may succeed.
  package var status: HTTPResponse.Status { code.answer.status }
  package var secondsToRetry: Int? { retryAfter ?? code.answer.retryAfter }

  /// Whether a send that was refused for this reason was definitely not accepted.
  var isCertain: Bool { code != .outcomeUnknown && code != .internalError }
}

extension Refusal {
  /// Describes an error for the caller.
  /// Errors of unknown types become `.internalError` without any details.
  init(describing error: any Error) {
    switch error {
    case let refusal as Refusal: self = refusal
    case let error as RegistryError: self.init(error)
    case let error as RDKafkaError: self.init(error)
    case let error as JSONError: self.init(error)
    case let error as AuthenticationError: self.init(error)
    case let error as TooManyReads: self.init(error)
    case let fault as RequestFault: self.init(fault)
    case is CancellationError:
      self.init(.overloaded, "the server is stopping; send the request again")
      // The usual cause is a client that has gone.
      isCausedByCaller = true
    default: self.init(.internalError, "the server failed to handle the request")
    }
  }

  private init(_ error: RegistryError) {
    switch error.code {
    case .gone: self.init(.gone, error.message)
    case .notFound: self.init(.notFound, error.message)
    case .forbidden: self.init(.forbidden, error.message)
    case .conflict, .changed: self.init(.conflict, error.message)
    default:
      if error.isOutcomeUnknown {
        self.init(.outcomeUnknown, "the registry did not confirm the request; it may have been carried out")
      } else {
        self.init(.registryUnavailable, "the registry is unavailable at the moment")
      }
    }
  }

  private init(_ error: RDKafkaError) {
    switch error.code {
    case .messageTooLarge: self.init(.tooLarge, "the send is larger than Kafka accepts")
    case .queueFull: self.init(.overloaded, "too many sends are waiting for Kafka; nothing was accepted")
    case .possiblyPersisted, .timedOut:
      self.init(.outcomeUnknown, "Kafka did not confirm the send in time; it may have been accepted")
    default: self.init(.kafkaUnavailable, "Kafka is unavailable; nothing was accepted")
    }
  }

  /// An error without a field concerns the whole body, otherwise one member of it.
  package init(_ error: JSONError) {
    if error.field.isEmpty {
      self.init(.malformedBody, "the body \(error.problem)")
    } else {
      self.init(.invalidField, error.description)
    }
  }

  /// If the waiting reads are the caller's own, the refusal names its quota `reads`, although that quota is a rate.
  private init(_ error: TooManyReads) {
    self.init(
      error.isOfCaller ? .overQuota : .overloaded,
      error.isOfCaller
        ? "too many of the caller's reads of \(error.store) wait; send fewer at a time" : error.description)
    if error.isOfCaller { quota = .reads }
  }

  private init(_ error: AuthenticationError) {
    switch error {
    case .overloaded: self.init(.overloaded, "too many credentials are waiting to be checked")
    case .unavailable: self.init(.authenticationUnavailable, "credentials cannot be checked at the moment")
    case .notFetched:
      self.init(.authenticationUnavailable, "the token's key is unknown and cannot be fetched yet")
      isCausedByCaller = true
    }
  }

  init(_ fault: RequestFault) {
    let code: ProblemCode =
      switch fault.kind {
      case .malformed: .malformedRequest
      case .notImplemented: .notImplemented
      case .headersTooLarge: .headersTooLarge
      case .overloaded: .overloaded
      case .timeout: .requestTimeout
      case .outcomeUnknown: .outcomeUnknown
      }
    self.init(code, fault.detail)
  }
}
