import NIOCore

/// Limits the work that an HTTP/2 client causes without getting answers: floods of settings, pings or resets.
///
/// A token bucket. A frame without data costs a token; a stream that ends before its answer costs the work of a
/// request. Answers give tokens back, so that a client that reads them is not limited. Frames that nghttp2 ignores, as
/// those of unknown types, are not counted here: `HTTP2Connection` limits their bytes.
struct FrameBudget {
  /// Twice what a client may do at once without fault: reset all of its 128 streams, each for `endedStream`.
  private static let capacity = 4096
  /// Far more than the pings and settings of any client.
  private static let refillPerSecond = 256
  /// A request that is parsed, authenticated and routed is more work than a frame; how much more is an estimate.
  private static let endedStream = 16
  /// A request has few frames besides its body: a header section with continuations, window updates, a priority.
  private static let answer = 8
  /// A client may open two windows after each frame of data.
  private static let dataFrame = 2

  private var tokens = FrameBudget.capacity
  private var refilled: NIODeadline

  init(at now: NIODeadline) { refilled = now }

  /// Takes the price of a frame without data. Returns false if the budget is used up.
  mutating func takeFrame(at now: @autoclosure () -> NIODeadline) -> Bool { take(1, at: now) }

  /// Takes the price of a stream that ended before its answer. Returns false if the budget is used up.
  mutating func takeEndedStream(at now: @autoclosure () -> NIODeadline) -> Bool { take(Self.endedStream, at: now) }

  /// Gives tokens for an answer that was sent.
  mutating func addAnswer() { tokens = min(Self.capacity, tokens + Self.answer) }

  /// Gives tokens for a frame of an answer's body.
  mutating func addDataFrame() { tokens = min(Self.capacity, tokens + Self.dataFrame) }

  /// The clock is read only when the tokens run out.
  private mutating func take(_ price: Int, at now: () -> NIODeadline) -> Bool {
    if tokens < price {
      let now = now()
      let due = (now - refilled).nanoseconds / (1_000_000_000 / Int64(Self.refillPerSecond))
      tokens = min(Self.capacity, tokens + Int(clamping: min(due, Int64(Self.capacity))))
      refilled = now
    }
    guard tokens >= price else { return false }
    tokens -= price
    return true
  }
}
