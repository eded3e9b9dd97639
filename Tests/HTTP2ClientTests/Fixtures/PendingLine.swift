import Foundation
import Synchronization

/// Cuts a stream of bytes into lines.
final class PendingLine: Sendable {
  private let rest = Mutex(Data())

  /// The lines that `data` completes.
  func lines(adding data: Data) -> [String] {
    rest.withLock { rest in
      rest += data
      var lines: [String] = []
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        lines.append(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
        rest = Data(rest[(end + 1)...])
      }
      return lines
    }
  }
}
