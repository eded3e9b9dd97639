/// The statement that lists the hubs with registrations, for every store.
enum HubList {
  /// Reads one row per hub: each step searches the primary key, which begins with the hub, for the next one.
  static let statement = """
    WITH RECURSIVE found(hub) AS (
      SELECT min(hub) FROM registrations
      UNION ALL SELECT (SELECT min(hub) FROM registrations WHERE hub > found.hub) FROM found WHERE found.hub IS NOT NULL
    ) SELECT hub FROM found WHERE hub IS NOT NULL LIMIT 1000
    """
}
