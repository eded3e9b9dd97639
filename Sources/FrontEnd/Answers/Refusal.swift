import FanfareCore
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import RDKafka

/// Why one request, or one line of a batch, failed.
///
/// The detail names the field, parameter or limit. It never contains a value from the request, because it is sent to
/// the caller and may be logged.
struct Refusal: Error, Hashable, CustomStringConvertible {
  let code: ProblemCode
  let detail: String
  /// For `.methodNotAllowed`: the methods that the path has.
  var allowedMethods: [HTTPRequest.Method] = []
  /// Seconds after which the same request may succeed; overrides the default of the code.
  var retryAfter: Int?

  init(_ code: ProblemCode, _ detail: String) {
    self.code = code
    self.detail = detail
  }

  var description: String { "\(code.rawValue): \(detail)" }

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
    case is NIOTooManyBytesError: self.init(.tooLarge, "the body is larger than this route accepts")
    case is HTTPParserError: self.init(.malformedRequest, "the body is not well-formed HTTP")
    case is CancellationError: self.init(.overloaded, "the server is stopping; send the request again")
    case let error as HTTPError: self.init(error)
    default: self.init(.internalError, "the server failed to handle the request")
    }
  }

  private init(_ error: RegistryError) {
    switch error.code {
    case .gone: self.init(.gone, error.message)
    case .notFound: self.init(.notFound, error.message)
    case .forbidden: self.init(.forbidden, error.message)
    case .conflict: self.init(.conflict, error.message)
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
  init(_ error: JSONError) {
    if error.field.isEmpty {
      self.init(.malformedBody, "the body \(error.problem)")
    } else {
      self.init(.invalidField, error.description)
    }
  }

  private init(_ error: AuthenticationError) {
    switch error {
    case .overloaded: self.init(.overloaded, "too many passwords are waiting to be checked")
    case .unavailable: self.init(.authenticationUnavailable, "credentials cannot be checked at the moment")
    }
  }

  /// Errors of the framework occur only outside the front end's own routes.
  private init(_ error: HTTPError) {
    switch error.status {
    case .notFound: self.init(.notFound, "there is no such route")
    case .contentTooLarge: self.init(.tooLarge, "the body is larger than this route accepts")
    case .unsupportedMediaType: self.init(.unsupportedMediaType, "this route does not accept the body's media type")
    case let status where status.kind == .clientError: self.init(.malformedRequest, "the request is not well-formed")
    default: self.init(.internalError, "the server failed to handle the request")
    }
  }
}
