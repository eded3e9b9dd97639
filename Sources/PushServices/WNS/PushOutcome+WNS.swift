import AsyncHTTPClient
import FanfareCore
import NIOCore
import NIOPosix
import NIOSSL

extension PushOutcome {
  /// What it means for a push that its HTTP/1.1 request got no answer. Without a connection WNS has certainly not seen it, and another try
  /// at once would not find one either; in all other cases nobody knows.
  init(wnsError error: any Error) {
    switch error {
    case let error as HTTPClientError:
      switch error {
      case .connectTimeout, .tlsHandshakeTimeout, .getConnectionFromPoolTimeout: self = .notSent
      case .alreadyShutdown: self = .closed
      case .deadlineExceeded, .readTimeout, .writeTimeout: self.init(.unknown, reason: "DeadlineExceeded")
      default: self.init(.unknown, reason: "ConnectionLost")
      }
    case is NIOConnectionError, is NIOSSLExtraError, NIOSSLError.handshakeFailed: self = .notSent
    case is ResponseAccumulator.ResponseTooBigError: self.init(.unknown, reason: "ResponseTooLarge")
    default: self.init(.unknown, reason: "ConnectionLost")
    }
  }
}
