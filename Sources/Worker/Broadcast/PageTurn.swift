/// What an open page of a broadcast may do now.
enum PageTurn: Sendable {
  /// Look up its devices, and wait.
  case none
  /// Be pushed as far as its head start goes, while the one before it is finished.
  case headStart
  /// Be pushed to its end.
  case whole
}
