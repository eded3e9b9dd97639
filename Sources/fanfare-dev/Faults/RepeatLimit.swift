/// How many pushes a fault may bring to their devices a second time.
enum RepeatLimit: Sendable {
  /// None: whoever had pushed could also note it, and every answer came.
  case none
  /// At most so many for each injury, for half of the injuries no more than a quarter of that, and none beside these.
  case each(most: Int)
  /// However many: for as long as the fault lasted, answers or notes of them were lost. What is promised even so is for
  /// the row itself to judge.
  case some

  /// Whether so many are within it: all of them, and those of each injury where they can be told apart.
  func allows(repeated: Int, each: [Int]) -> Bool {
    switch self {
    case .none: repeated == 0
    case .some: true
    case .each(let most):
      each.allSatisfy { $0 <= most } && Self.median(of: each) <= most / 4 && repeated <= each.reduce(0, +)
    }
  }

  /// The upper of the two in the middle, where there are two; 0 for none.
  static func median(of numbers: [Int]) -> Int { numbers.isEmpty ? 0 : numbers.sorted()[numbers.count / 2] }
}
