import GRDB

/// The SQLite tables and their migrations.
enum Schema {
  /// `PRAGMA application_id` of a ledger's file: "FnLd".
  static let applicationID: Int32 = 0x466E_4C64

  /// The migrations; `PRAGMA user_version` is the number of those applied. Only append.
  ///
  /// - sends: one row per send, with the sum of its work items. Most sends have one item and only this row. `part_0` is
  ///   the digest of that item's record; null while the send is open, and for sends of several items. `known_parts` is
  ///   the number of items, `settled_parts` the number of those that count: none, or all those of one attempt.
  ///   `devices` holds the results of single devices, `counts` the counts where there are too many devices. Codes are
  ///   those of `StoredCode`; single times are Unix milliseconds.
  ///   `failures` holds the counts by reason where there are counts, `times` when the items passed through their stages
  ///   (see `StoredTimes`), and the index `newest_broadcasts` the sends of `mayBeBroadcast`.
  /// - attempts: the sum of each attempt's items while a send of several items is open. See `SendItems`.
  /// - parts: the items of each attempt; after settlement, those that counted. A row is `span` consecutive items from
  ///   `part` on that one record has settled; the rows of an attempt do not overlap.
  /// - duplicates: records that did not count, so that each is counted as a duplicate once.
  /// - totals, device_totals: totals per hub, updated in the transaction that changes the sends.
  /// - positions: the positions read; see `OffsetRewind`.
  /// - acknowledgements: the places of known problems of the audit; see ``Acknowledgement``.
  static let steps = [
    """
    CREATE TABLE hubs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

    CREATE TABLE sends (
      hub INTEGER NOT NULL,
      id BLOB NOT NULL CHECK (length(id) = 16),
      accepted_at INTEGER NOT NULL,
      is_announced INTEGER NOT NULL,
      sender TEXT,
      audience TEXT NOT NULL,
      known_parts INTEGER NOT NULL DEFAULT 1,
      settled_parts INTEGER NOT NULL DEFAULT 0,
      state INTEGER,
      settled_at INTEGER,
      part_0 INTEGER,
      counts BLOB,
      devices BLOB,
      PRIMARY KEY (hub, id)
    ) WITHOUT ROWID;
    CREATE INDEX done ON sends (settled_at) WHERE is_announced = 1 AND settled_parts >= known_parts;

    CREATE TABLE parts (
      hub INTEGER NOT NULL, send BLOB NOT NULL, part INTEGER NOT NULL, digest INTEGER NOT NULL,
      PRIMARY KEY (hub, send, part)
    ) WITHOUT ROWID;

    CREATE TABLE duplicates (
      hub INTEGER NOT NULL, send BLOB NOT NULL, part INTEGER NOT NULL, digest INTEGER NOT NULL,
      PRIMARY KEY (hub, send, part, digest)
    ) WITHOUT ROWID;

    CREATE TABLE totals (
      hub INTEGER PRIMARY KEY,
      accepted INTEGER NOT NULL DEFAULT 0,
      settled INTEGER NOT NULL DEFAULT 0,
      no_target INTEGER NOT NULL DEFAULT 0,
      expired INTEGER NOT NULL DEFAULT 0,
      dead_lettered INTEGER NOT NULL DEFAULT 0,
      unannounced INTEGER NOT NULL DEFAULT 0,
      duplicates INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE device_totals (
      hub INTEGER NOT NULL, platform INTEGER NOT NULL, outcome INTEGER NOT NULL, devices INTEGER NOT NULL,
      PRIMARY KEY (hub, platform, outcome)
    ) WITHOUT ROWID;

    CREATE TABLE positions (
      topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
      PRIMARY KEY (topic, partition)
    ) WITHOUT ROWID;
    """,
    // Earlier parts had no attempt. Open sends of several items are reset and counted again.
    """
    DROP TABLE parts;
    CREATE TABLE attempts (
      hub INTEGER NOT NULL, send BLOB NOT NULL, attempt BLOB NOT NULL, settled_parts INTEGER NOT NULL,
      state INTEGER NOT NULL, settled_at INTEGER NOT NULL, counts BLOB, devices BLOB,
      PRIMARY KEY (hub, send, attempt)
    ) WITHOUT ROWID;
    CREATE TABLE parts (
      hub INTEGER NOT NULL, send BLOB NOT NULL, attempt BLOB NOT NULL, part INTEGER NOT NULL, digest INTEGER NOT NULL,
      PRIMARY KEY (hub, send, attempt, part)
    ) WITHOUT ROWID;
    UPDATE sends SET settled_parts = 0, state = NULL, settled_at = NULL, part_0 = NULL, counts = NULL, devices = NULL
    WHERE settled_parts > 0 AND settled_parts < known_parts;
    """,
    "ALTER TABLE totals ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;",
    // Sends of one moment are in the order of their ids: each index of a WITHOUT ROWID table includes the key.
    """
    CREATE INDEX newest ON sends (hub, accepted_at);
    CREATE INDEX newest_by_sender ON sends (hub, sender, accepted_at);
    CREATE INDEX newest_by_audience ON sends (hub, audience, accepted_at);
    """,
    """
    CREATE TABLE acknowledgements (
      topic TEXT NOT NULL, partition INTEGER NOT NULL, log_offset INTEGER NOT NULL, reason TEXT NOT NULL,
      acknowledged_at INTEGER NOT NULL,
      PRIMARY KEY (topic, partition, log_offset)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE sends ADD COLUMN failures BLOB;
    ALTER TABLE attempts ADD COLUMN failures BLOB;
    CREATE INDEX newest_broadcasts ON sends (hub, accepted_at) WHERE \(mayBeBroadcast);
    """,
    "ALTER TABLE sends ADD COLUMN times BLOB; ALTER TABLE attempts ADD COLUMN times BLOB;",
    "ALTER TABLE parts ADD COLUMN span INTEGER NOT NULL DEFAULT 1;",
  ]

  /// SQL condition: true for the audience of each broadcast, false for those of most other sends; see
  /// `Audience.isBroadcast(text:)`. Part of an index: it must never change.
  static let mayBeBroadcast = """
    substr(audience, 1, 13) <> 'registration/' AND substr(audience, 1, 7) <> 'device/' \
    AND (substr(audience, 1, 9) <> 'username:' OR instr(audience, ' && ') > 0 OR instr(audience, ' || ') > 0)
    """

  /// Migrates the file to the present schema, in one transaction, so that of two processes that start at once the
  /// second finds it migrated. Throws `LedgerError` when the file belongs to something else or to a later release.
  static func migrate(_ db: Database) throws {
    try db.inTransaction(.immediate) {
      let version = try version(of: db)
      guard version < steps.count else { return .commit }
      for step in steps[version...] { try db.execute(sql: step) }
      try db.execute(sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = \(steps.count)")
      return .commit
    }
  }

  /// Throws `LedgerError` unless this release can read the file as it is.
  static func verify(_ db: Database) throws {
    guard try version(of: db) == steps.count else {
      throw LedgerError(.notThere, "the ledger's tables have not been created yet")
    }
  }

  private static func version(of db: Database) throws -> Int {
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
    let isEmpty = try Row.fetchOne(db, sql: "SELECT 1 FROM sqlite_master LIMIT 1") == nil
    guard application == applicationID || (application == 0 && version == 0 && isEmpty) else {
      throw LedgerError(.unusable, "the file is a database of another application")
    }
    guard version <= steps.count else {
      throw LedgerError(
        .unusable, "the file is from a later release (schema \(version); this release supports up to \(steps.count))")
    }
    return version
  }
}
