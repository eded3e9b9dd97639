import FanfareCore

/// Fills a page with the rows that match a query; the same for every store.
///
/// Conditions without an index (the state; kind or sender among one user's sends) filter at most `mostExamined` sends;
/// then the page ends early, and the caller asks for the next one.
struct PageBuilder {
  /// The most sends examined for one page.
  static let mostExamined = 10_000

  private let query: SendQuery
  private var sends: [SendReport] = []
  private var examined = 0
  /// The position of the last row examined.
  private(set) var position: SendQuery.Position

  init(_ query: SendQuery) {
    self.query = query
    position = query.start
  }

  /// Whether no further row may be added.
  var isFull: Bool { sends.count >= query.limit || examined >= Self.mostExamined }

  /// The number of rows to read next, at most `stride` if rows may be filtered out. Includes one row more than can be
  /// added, which shows whether there is another page.
  func rowsToRead(stride: Int) -> Int {
    min(query.isFiltered ? stride : query.limit - sends.count + 1, Self.mostExamined - examined + 1)
  }

  /// The page when it is full and there are more rows.
  var full: SendPage { SendPage(sends: sends, next: position) }

  /// The page when there are no more rows.
  var last: SendPage { SendPage(sends: sends, next: nil) }

  /// Examines the next row. `furthest` is called as in `SendRow.makeReport`.
  mutating func add(_ row: SendRow, at position: SendQuery.Position, furthest: () throws -> ItemSum?) rethrows {
    examined += 1
    self.position = position
    guard query.matches(row) else { return }
    sends.append(try row.makeReport(of: position.send, hub: query.hub, furthest: furthest).withoutDevices)
  }
}

extension SendQuery {
  /// The index that finds a query's sends.
  enum Index {
    case all
    case sender(String)
    case recipient(String)
    case senderOrRecipient(String)
  }

  var index: Index {
    switch (sender, user) {
    case (nil, nil): .all
    case (let sender?, nil): .sender(sender)
    case (nil, let user?): .senderOrRecipient(user)
    case (let sender?, let user?): sender.utf8.elementsEqual(user.utf8) ? .sender(sender) : .recipient(user)
    }
  }

  /// Whether rows may be filtered out: by state or kind, or by sender when the index of the recipient is read.
  fileprivate var isFiltered: Bool {
    if case .recipient = index { true } else { state != nil || kind != nil }
  }

  /// Whether a row has the query's state, kind and sender.
  fileprivate func matches(_ row: SendRow) -> Bool {
    if let state, row.report != state { return false }
    if let kind, Audience.isBroadcast(text: row.audience) != (kind == .broadcast) { return false }
    // Compares bytes: Swift's == treats canonically equivalent names as equal.
    if let sender, row.sender.map({ $0.utf8.elementsEqual(sender.utf8) }) != true { return false }
    return true
  }
}

extension SendReport {
  /// The report as listed in a page.
  fileprivate var withoutDevices: SendReport {
    SendReport(
      id: id, hub: hub, state: state, sender: sender, audience: audience, isBroadcast: isBroadcast, sendAt: sendAt,
      acceptedAt: acceptedAt, settledAt: settledAt, counts: counts, devices: nil)
  }
}
