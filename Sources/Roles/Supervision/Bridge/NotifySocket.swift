import Glibc

/// The datagram socket on which a service manager receives messages, as sd_notify(3) describes it.
final class NotifySocket: Sendable {
  private let descriptor: Int32
  private let address: sockaddr_un
  private let length: socklen_t

  /// `name` is the value of `NOTIFY_SOCKET`: a path, or `@` and an abstract name. Throws for any other name, and if
  /// the system has no descriptor left.
  init(_ name: String) throws(NotifySocketError) {
    let name = Array(name.utf8)
    var address = sockaddr_un()
    let isAbstract = name.first == UInt8(ascii: "@")
    guard name.count > 1, isAbstract || name[0] == UInt8(ascii: "/"),
      name.count < MemoryLayout.size(ofValue: address.sun_path)
    else { throw NotifySocketError("NOTIFY_SOCKET names no socket of the type AF_UNIX") }
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { path in
      unsafe path.copyBytes(from: name)
      if isAbstract { unsafe path[0] = 0 }
    }
    self.address = address
    // The length ends an abstract name; a zero byte ends a path.
    let begin = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: address.sun_path)
    length = socklen_t(begin + name.count + (isAbstract ? 0 : 1))
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw NotifySocketError(code: errno) }
  }

  deinit { close(descriptor) }

  /// Sends one message. Does not wait: throws if the receiver's queue is full, or if it does not listen.
  func send(_ message: String) throws(NotifySocketError) {
    let bytes = Array(message.utf8)
    var address = address
    let sent = unsafe withUnsafePointer(to: &address) { address in
      unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT), address, length)
      }
    }
    guard sent == bytes.count else { throw NotifySocketError(code: errno) }
  }
}

/// Why a service manager was not told something.
struct NotifySocketError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  init(code: Int32) { description = unsafe String(cString: strerror(code)) }
}
