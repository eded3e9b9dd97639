import Foundation
import Roles
import SettingsTable

/// A column of a table: its title, and the cell of each row.
struct Column<Row> {
  fileprivate let title: String
  fileprivate let isNumber: Bool
  fileprivate let cell: (Row) -> String?

  init(_ title: String, isNumber: Bool = false, _ cell: @escaping (Row) -> String?) {
    (self.title, self.isNumber, self.cell) = (title, isNumber, cell)
  }
}

/// A table for people: aligned columns, on a terminal truncated to its width.
struct TextTable {
  private let areNumbers: [Bool]
  private let head: [String]
  private let rows: [[String]]

  /// Control characters in cells are escaped.
  init<Row>(_ columns: [Column<Row>], _ rows: [Row]) {
    areNumbers = columns.map(\.isNumber)
    head = columns.map { $0.title.uppercased() }
    self.rows = rows.map { row in columns.map { Printable.line($0.cell(row) ?? "") } }
  }

  /// The lines, with a head unless there are no rows.
  ///
  /// `width` is the terminal's; nil for no limit. A truncated line ends with `…`.
  func lines(width: Int?) -> [String] {
    guard !rows.isEmpty else { return [] }
    let all = [head] + rows
    let widths = head.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      let cells = row.enumerated().map { index, cell in
        let padding = String(repeating: " ", count: widths[index] - cell.count)
        return areNumbers[index] ? padding + cell : cell + padding
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

/// A result that commands print as a line of text, or as a line of JSON.
protocol OutputLine: Encodable {
  var text: String { get }
}

extension Console {
  static func print(_ line: some OutputLine, isJSON: Bool) throws {
    if isJSON { try print(json: line) } else { print(line.text) }
  }

  /// Prints JSON objects, one a line.
  static func print(objects: [[String: Any]]) throws {
    for object in objects {
      let line = try JSONSerialization.data(
        withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
      print(jsonText: String(decoding: line, as: UTF8.self))
    }
  }
}
