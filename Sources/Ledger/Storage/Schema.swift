import GRDB

/// The tables, and how a file gets them.
enum Schema {
  /// Tells a ledger's file from any other database (`PRAGMA application_id`): "FnLd".
  static let applicationID: Int32 = 0x466E_4C64

  /// The steps from an empty file to the present one; `PRAGMA user_version` counts those done. Only ever appended to.
  ///
  /// - sends: one row per send, with the sum of all its work items. A send that is one item, as most are, is this row
  ///   alone. `part_0` is the digest of that item's record, null while it is open and for a send of several items.
  ///   `known_parts` is how many items it has, `settled_parts` how many have counted: none, or all those of one
  ///   attempt. `devices` holds each device's result while there are few, `counts` the numbers while there are many.
  ///   Codes are those of `StoredCode`; times are Unix milliseconds.
  /// - attempts: while a send of several items is open, what those of each attempt have come to. See `AttemptTable`.
  /// - parts: which items those are, and afterwards those that have counted.
  /// - duplicates: records that have not counted, so that each is counted as such once however often it is read.
  /// - totals, device_totals: sums per hub, changed in the transaction that changes what they sum up.
  /// - positions: what has been read; see `Rewind`.
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
    // Parts did not say to which attempt they belong, nor how many there are. A send of several that is open is counted
    // anew.
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
    // Sends of one moment in the order of their ids: a table without row ids has its key in each index.
    """
    CREATE INDEX newest ON sends (hub, accepted_at);
    CREATE INDEX newest_by_sender ON sends (hub, sender, accepted_at);
    CREATE INDEX newest_by_audience ON sends (hub, audience, accepted_at);
    """,
  ]

  /// Brings the file up to date. One write transaction from the look at the version to the last step, so that of two
  /// processes which start at once the second finds everything done. Throws `LedgerError` when the file is something
  /// else or a later release's.
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
      throw LedgerError(.notThere, "the ledger's tables are not there yet")
    }
  }

  private static func version(of db: Database) throws -> Int {
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
    let isEmpty = try Row.fetchOne(db, sql: "SELECT 1 FROM sqlite_master LIMIT 1") == nil
    guard application == applicationID || (application == 0 && version == 0 && isEmpty) else {
      throw LedgerError(.unusable, "it is a database of something else")
    }
    guard version <= steps.count else {
      throw LedgerError(.unusable, "it was made by a later release (schema \(version), this one knows \(steps.count))")
    }
    return version
  }
}
