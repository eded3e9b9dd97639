/// What an open page of a broadcast may do now.
enum PageTurn: Hashable, Sendable {
  /// Look up its devices, and wait.
  case none
  /// Be pushed to so many devices, while the one before it is finished.
  case headStart(Int)
  /// Be pushed to its end.
  case whole
}
