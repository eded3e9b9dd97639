extension Duration {
  /// Whole milliseconds, rounded down, never negative.
  var wholeMilliseconds: Int {
    let (seconds, attoseconds) = components
    return max(0, Int(clamping: seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
  }

  /// Whole milliseconds as librdkafka takes a timeout, at most a day.
  var timeoutMilliseconds: Int32 {
    Int32(clamping: min(wholeMilliseconds, 86_400_000))
  }
}
