import Roles
import Simulation

/// The coverage of runs as text: every step with its count and its event, and every fault with the phases it has met.
struct CoverageTable: CustomStringConvertible {
  let coverage: Coverage

  var description: String {
    (coverage.stepLists.map(text) + [matrix]).joined(separator: "\n\n")
  }

  private func text(_ list: Coverage.List) -> String {
    let (names, counts) = (list.rows.map(\.name), list.rows.map(\.count.grouped))
    let (width, digits) = (names.map(\.count).max() ?? 0, counts.map(\.count).max() ?? 0)
    let lines = list.rows.indices.map { index in
      "  \(names[index].padded(to: width))  \(counts[index].padded(to: -digits))  \(list.rows[index].event)"
    }
    return ([list.name] + lines).joined(separator: "\n")
  }

  private var matrix: String {
    let places = Coverage.Place.allCases.map { "\($0)".split(separator: " ").map(String.init) }
    let width = (Profile.Fault.allCases.map(\.rawValue.count).max() ?? 0) + 2
    func line(_ name: String, _ cells: [String]) -> String {
      name.padded(to: width) + zip(cells, places).map { $0.padded(to: -(($1.map(\.count).max() ?? 0) + 1)) }.joined()
    }
    let rows = Profile.Fault.allCases.map { fault in
      let counts = Coverage.Place.allCases.map { coverage.situations[Coverage.Situation(fault, in: $0)] ?? 0 }
      return line("  \(fault)", counts.map(\.grouped))
    }
    let heads = [line("", places.map { $0[0] }), line("fault × phase", places.map { $0[1] })]
    return (heads + rows).joined(separator: "\n")
  }
}

extension String {
  /// With spaces behind it, or before it if the width is negative.
  fileprivate func padded(to width: Int) -> String {
    let spaces = String(repeating: " ", count: max(0, abs(width) - count))
    return width < 0 ? spaces + self : self + spaces
  }
}
