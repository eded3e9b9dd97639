import FanfareCore
import Hummingbird
import NIOCore
import NIOHTTP1
import RDKafka

extension Refusal {
  /// What is told of an error that something below the front end threw. Whatever is not known here is a mistake of the
  /// server's, and nothing of it is told.
  init(describing error: any Error) {
    switch error {
    case let refusal as Refusal: self = refusal
    case let error as RegistryError: self.init(error)
    case let error as RDKafkaError: self.init(error)
    case let error as JSONError: self.init(error)
    case let error as AuthenticationError: self.init(error)
    case is NIOTooManyBytesError: self.init(.tooLarge, "the body is larger than this route takes")
    case is HTTPParserError: self.init(.malformedRequest, "the request's body is not well-formed HTTP")
    case is CancellationError: self.init(.overloaded, "the server is stopping")
    case let error as HTTPError: self.init(error)
    default: self.init(.internalError, "the server failed to handle the request")
    }
  }

  private init(_ error: RegistryError) {
    let code: ProblemCode =
      switch error.code {
      case .gone: .gone
      case .notFound: .notFound
      case .forbidden: .forbidden
      case .conflict: .conflict
      default: error.isOutcomeUnknown ? .outcomeUnknown : .registryUnavailable
      }
    let message =
      switch code {
      case .outcomeUnknown: "the registry has not confirmed the request; it may have been taken all the same"
      case .registryUnavailable: "the registry cannot take the request now"
      default: error.message
      }
    self.init(code, message)
  }

  private init(_ error: RDKafkaError) {
    switch error.code {
    case .messageTooLarge: self.init(.tooLarge, "the send is larger than a record may be")
    case .queueFull: self.init(.overloaded, "more sends are waiting for Kafka than may; nothing was accepted")
    case .possiblyPersisted, .timedOut:
      self.init(.outcomeUnknown, "Kafka has not confirmed the send in time; it may have been accepted all the same")
    default: self.init(.kafkaUnavailable, "Kafka cannot take the send now; nothing was accepted")
    }
  }

  /// A whole document that is wrong is a malformed body, a member of it an invalid field.
  init(_ error: JSONError) {
    self.init(
      error.field.isEmpty ? .malformedBody : .invalidField,
      error.field.isEmpty ? "the body \(error.problem)" : error.description)
  }

  private init(_ error: AuthenticationError) {
    switch error {
    case .overloaded: self.init(.overloaded, "more passwords are waiting to be checked than may")
    case .unavailable: self.init(.authenticationUnavailable, "credentials cannot be checked now")
    }
  }

  /// The framework's own errors; they only come up where no route of ours is involved.
  private init(_ error: HTTPError) {
    switch error.status {
    case .notFound: self.init(.notFound, "there is no such route")
    case .contentTooLarge: self.init(.tooLarge, "the body is larger than this route takes")
    case .unsupportedMediaType: self.init(.unsupportedMediaType, "the body's media type is not one this route takes")
    case let status where status.kind == .clientError: self.init(.malformedRequest, "the request is not well-formed")
    default: self.init(.internalError, "the server failed to handle the request")
    }
  }
}
