import Roles
import SettingsTable

/// A table for people: aligned columns, on a terminal truncated to its width.
struct TextTable {
  struct Column {
    let title: String
    var isNumber = false
  }

  private let columns: [Column]
  private var rows: [[String]] = []

  init(_ columns: [Column]) { self.columns = columns }

  /// Adds a row of one cell for each column. Control characters are escaped.
  mutating func add(_ cells: [String]) { rows.append(cells.map(Printable.line)) }

  /// The lines, with a head unless there are no rows.
  ///
  /// `width` is the terminal's; nil for no limit. A truncated line ends with `…`.
  func lines(width: Int?) -> [String] {
    guard !rows.isEmpty else { return [] }
    let all = [columns.map { $0.title.uppercased() }] + rows
    let widths = columns.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      let cells = row.enumerated().map { index, cell in
        let padding = String(repeating: " ", count: widths[index] - cell.count)
        return columns[index].isNumber ? padding + cell : cell + padding
      }
      let line = cells.joined(separator: "  ").trimmingSuffix { $0 == " " }
      guard let width, line.count > width else { return line }
      return line.prefix(max(0, width - 1)) + "…"
    }
  }

  /// Prints the table.
  func print() {
    for line in lines(width: TerminalSize.columns) { Console.print(line) }
  }
}
