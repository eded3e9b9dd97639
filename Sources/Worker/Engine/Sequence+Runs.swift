extension Sequence where Element: Equatable {
  /// Calls `body` with each run of equal elements, and how many it has.
  func forEachRun(_ body: (Element, Int) -> Void) {
    var run: (element: Element, count: Int)?
    for element in self {
      if let known = run, known.element == element {
        run = (element, known.count + 1)
      } else {
        if let known = run { body(known.element, known.count) }
        run = (element, 1)
      }
    }
    if let run { body(run.element, run.count) }
  }
}
