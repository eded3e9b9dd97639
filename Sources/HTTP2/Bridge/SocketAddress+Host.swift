import Glibc
import NIOCore
import NIOPosix

extension SocketAddress {
  /// The addresses of a host name or address, in the order in which the system would try them. Blocks for as long as
  /// the system's resolver waits. Throws `HTTP2ConnectionError` with `connectFailed` if there are none.
  static func addresses(of host: String, port: Int) throws -> [SocketAddress] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    unsafe hints.ai_protocol = Int32(IPPROTO_TCP)
    var first: UnsafeMutablePointer<addrinfo>?
    let code = unsafe getaddrinfo(host, String(port), &hints, &first)
    guard code == 0 else {
      throw HTTP2ConnectionError(.connectFailed, "no address: " + (unsafe String(cString: gai_strerror(code))))
    }
    defer { unsafe freeaddrinfo(first) }
    var addresses: [SocketAddress] = []
    var next = unsafe first
    while let info = unsafe next {
      let address = unsafe UnsafeRawPointer(info.pointee.ai_addr)
      switch unsafe info.pointee.ai_family {
      case AF_INET:
        if let address = unsafe address {
          addresses.append(unsafe SocketAddress(address.load(as: sockaddr_in.self), host: host))
        }
      case AF_INET6:
        if let address = unsafe address {
          addresses.append(unsafe SocketAddress(address.load(as: sockaddr_in6.self), host: host))
        }
      default: break
      }
      unsafe next = info.pointee.ai_next
    }
    return addresses
  }
}

extension HTTP2ConnectionError {
  /// No TCP connection, with the cause in words in place of SwiftNIO's types.
  init(connecting error: any Error) {
    var cause = error
    if let error = error as? NIOConnectionError {
      cause = error.connectionErrors.last?.error ?? error.dnsAError ?? error.dnsAAAAError ?? error
    }
    switch cause {
    case let cause as HTTP2ConnectionError: self = cause
    case let cause as IOError: self.init(.connectFailed, unsafe String(cString: strerror(cause.errnoCode)))
    case ChannelError.connectTimeout: self.init(.connectFailed, "no answer in time")
    default: self.init(.connectFailed, String(describing: cause))
    }
  }
}
