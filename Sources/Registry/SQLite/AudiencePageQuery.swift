import FanfareCore
import GRDB

/// The statement that reads one page of an audience: the candidates in the order of their ids, each with whether it is
/// of the audience.
///
/// One range of the tags' key is read for each tag that drives, in the order of the ids, and the ranges are merged as
/// they are read: SQLite makes coroutines of them, and neither sorts nor reads further than the limit. What else is
/// asked of a candidate is looked up by key, and only once platform and age are right.
struct AudiencePageQuery {
  let sql: String
  let arguments: StatementArguments
  /// Whether the text is one of the few that most pages share, so that its statement is worth keeping.
  let isUsual: Bool

  /// A page of a plan whose source is registrations or tags, at least one.
  init(
    _ plan: AudiencePlan, hub: HubName, platforms: PlatformSet, of slice: RegistrationSlice, createdBefore: UnixTime,
    limit: Int
  ) {
    var values: [(any DatabaseValueConvertible)?] = [
      hub.rawValue, slice.first.data, slice.last.data, limit, Int64(platforms.rawValue), createdBefore.milliseconds,
    ]
    /// Makes an argument of a tag. One with control characters is none that is stored, and SQLite would cut it short at
    /// a NUL: NULL equals nothing.
    func bind(_ tag: String) -> String {
      values.append(tag.isStorable ? tag : nil)
      return "?\(values.count)"
    }
    var candidates: String
    if case .tags(let tags) = plan.source {
      candidates = tags.map { tag in
        """
        SELECT registration, platform, handle, registered_at, created_at FROM tags
        WHERE tag = \(bind(tag)) AND hub = ?1 AND registration >= ?2 AND registration <= ?3
        """
      }.joined(separator: "\nUNION ")
      isUsual = tags.count == 1 && plan.condition == nil
    } else {
      candidates = """
        SELECT id AS registration, platform, handle, registered_at, created_at FROM registrations
        WHERE hub = ?1 AND id >= ?2 AND id <= ?3
        """
      isUsual = plan.condition == nil
    }
    candidates += "\nORDER BY registration LIMIT ?4"
    let condition = plan.condition.map { Self.condition($0, bind) } ?? "1"
    // An issued id that waits has no platform, and so is of no audience.
    sql = """
      SELECT registration, platform, handle, registered_at,
        CASE WHEN platform & ?5 AND created_at <= ?6 THEN \(condition) ELSE 0 END
      FROM (\(candidates)) AS candidate
      """
    arguments = StatementArguments(values)
  }

  private static func condition(_ expression: TagExpression, _ bind: (String) -> String) -> String {
    switch expression {
    case .tag(let tag):
      "EXISTS (SELECT 1 FROM tags WHERE tag = \(bind(tag)) AND hub = ?1 AND registration = candidate.registration)"
    case .not(let operand): "NOT \(condition(operand, bind))"
    case .all(let operands): list(operands, "AND", empty: "1", bind)
    case .any(let operands): list(operands, "OR", empty: "0", bind)
    }
  }

  private static func list(
    _ operands: [TagExpression], _ connective: String, empty: String, _ bind: (String) -> String
  ) -> String {
    operands.isEmpty ? empty : "(" + operands.map { condition($0, bind) }.joined(separator: " \(connective) ") + ")"
  }
}
