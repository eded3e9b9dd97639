import Foundation

/// Makes lines of what comes in pieces.
struct LineSplitter {
  private var rest = Data()
  private let line: AsyncStream<String>.Continuation

  /// A splitter that hands each line on, and ends the stream with the input.
  init(_ line: AsyncStream<String>.Continuation) {
    self.line = line
  }

  /// Takes the next piece; an empty one is the end.
  mutating func take(_ data: Data) {
    rest += data
    while let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
      line.yield(String(decoding: rest[..<newline], as: UTF8.self))
      rest = Data(rest[rest.index(after: newline)...])
    }
    guard data.isEmpty else { return }
    if !rest.isEmpty { line.yield(String(decoding: rest, as: UTF8.self)) }
    line.finish()
  }
}
