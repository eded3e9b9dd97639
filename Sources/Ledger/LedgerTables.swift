package import Store

/// The tables of the ledger.
package enum LedgerTables {
  /// The steps to the present tables. Codes are those of `StoredCode`; single times are Unix milliseconds; a day is the
  /// day of acceptance, in days since 1970. Texts are compared by bytes. The engines' tables differ: SQLite's are
  /// small, PostgreSQL's can be dropped by the day and written by several ledgers at a time.
  ///
  /// - sends: one row per send, with the sum of its work items. Most sends have one item and only this row. `digest` is
  ///   the digest of that item's record; null while the send is open, and for sends of several items. `known_parts` is
  ///   the number of items, `settled_parts` the number of those that count: none, or all those of one attempt.
  ///   `devices` holds the results of single devices, `counts` the counts where there are too many devices. `failures`
  ///   holds the counts by reason where there are counts, `times` when the items passed through their stages (see
  ///   `StoredTimes`), and the index `newest_broadcasts` the sends of `mayBeBroadcast`.
  /// - ledger_attempts: the sum of each attempt's items while a send of several items is open. See `SendItems`.
  /// - ledger_parts: the items of each attempt; after settlement, those that counted. A row is `span` consecutive items
  ///   from `part` on that one record has settled; the rows of an attempt do not overlap.
  /// - ledger_duplicates: records that did not count, so that each is counted as a duplicate once.
  /// - totals, device_totals: totals per hub, updated in the transaction that changes the sends; in PostgreSQL per hub
  ///   and slot, and each transaction picks one of the slots.
  /// - ledger_positions: the positions read; see `OffsetRewind`.
  /// - ledger_acknowledgements: the places of known problems of the audit; see ``Acknowledgement``.
  /// - ledger_sends: a partition for each day within the retention, and the default partition; see `DayPartitions`.
  ///   `change` is what the last upsert did to the row; see `BatchTransaction`. The further indexes serve lists, by
  ///   hashes of names; see `ListKey`. Each row is updated about once: the fill factor leaves room for that.
  /// - ledger_days: the days that have a partition. Creating or dropping a partition locks its row, and so does writing
  ///   to an old one.
  package static let migration = SchemaMigration(
    component: "ledger",
    // "FnLd"
    applicationID: 0x466E_4C64,
    steps: [SchemaMigration.Step(common, sqlite: sqlite, postgreSQL: postgreSQL)])

  /// What both engines have.
  private static let common = """
    CREATE TABLE ledger_attempts (
      day integer NOT NULL,
      hub text COLLATE "C" NOT NULL,
      send uuid NOT NULL,
      attempt bytea NOT NULL,
      settled_parts bigint NOT NULL,
      state smallint NOT NULL,
      settled_at bigint NOT NULL,
      counts bytea,
      devices bytea,
      failures bytea,
      times bytea,
      PRIMARY KEY (day, hub, send, attempt)
    ) WITHOUT ROWID;
    CREATE TABLE ledger_parts (
      day integer NOT NULL,
      hub text COLLATE "C" NOT NULL,
      send uuid NOT NULL,
      attempt bytea NOT NULL,
      part bigint NOT NULL,
      span integer NOT NULL,
      digest bigint NOT NULL,
      PRIMARY KEY (day, hub, send, attempt, part)
    ) WITHOUT ROWID;
    CREATE TABLE ledger_duplicates (
      day integer NOT NULL,
      hub text COLLATE "C" NOT NULL,
      send uuid NOT NULL,
      part bigint NOT NULL,
      digest bigint NOT NULL,
      PRIMARY KEY (day, hub, send, part, digest)
    ) WITHOUT ROWID;
    CREATE TABLE ledger_positions (
      topic text COLLATE "C" NOT NULL,
      part integer NOT NULL,
      next_offset bigint NOT NULL,
      PRIMARY KEY (topic, part)
    ) WITHOUT ROWID;
    CREATE TABLE ledger_acknowledgements (
      topic text COLLATE "C" NOT NULL,
      part integer NOT NULL,
      log_offset bigint NOT NULL,
      reason text NOT NULL,
      acknowledged_at bigint NOT NULL,
      PRIMARY KEY (topic, part, log_offset)
    ) WITHOUT ROWID;

    """

  private static let sqlite = """
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
      digest INTEGER,
      counts BLOB,
      devices BLOB,
      failures BLOB,
      times BLOB,
      PRIMARY KEY (hub, id)
    ) WITHOUT ROWID;
    CREATE INDEX done ON sends (settled_at) WHERE is_announced = 1 AND settled_parts >= known_parts;
    -- Sends of one moment are in the order of their ids: each index of a WITHOUT ROWID table includes the key.
    CREATE INDEX newest ON sends (hub, accepted_at);
    CREATE INDEX newest_by_sender ON sends (hub, sender, accepted_at);
    CREATE INDEX newest_by_audience ON sends (hub, audience, accepted_at);
    CREATE INDEX newest_broadcasts ON sends (hub, accepted_at) WHERE \(mayBeBroadcast);

    CREATE TABLE totals (
      hub INTEGER PRIMARY KEY,
      accepted INTEGER NOT NULL DEFAULT 0,
      settled INTEGER NOT NULL DEFAULT 0,
      no_target INTEGER NOT NULL DEFAULT 0,
      expired INTEGER NOT NULL DEFAULT 0,
      dead_lettered INTEGER NOT NULL DEFAULT 0,
      cancelled INTEGER NOT NULL DEFAULT 0,
      unannounced INTEGER NOT NULL DEFAULT 0,
      duplicates INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE device_totals (
      hub INTEGER NOT NULL, platform INTEGER NOT NULL, outcome INTEGER NOT NULL, devices INTEGER NOT NULL,
      PRIMARY KEY (hub, platform, outcome)
    ) WITHOUT ROWID;
    """

  private static let postgreSQL = """
    CREATE TABLE ledger_sends (
      hub text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      day integer NOT NULL,
      accepted_at bigint NOT NULL,
      known_parts bigint NOT NULL DEFAULT 1,
      settled_parts bigint NOT NULL,
      settled_at bigint,
      digest bigint,
      state smallint,
      change smallint NOT NULL DEFAULT 0,
      is_announced boolean NOT NULL,
      hub_key bigint NOT NULL,
      sender_key bigint,
      audience_key bigint NOT NULL,
      sender text COLLATE "C",
      audience text COLLATE "C" NOT NULL,
      counts bytea,
      devices bytea,
      failures bytea,
      times bytea,
      PRIMARY KEY (id, hub, day)
    ) PARTITION BY RANGE (day);
    CREATE INDEX ledger_sends_newest ON ledger_sends (hub_key, accepted_at, id);
    CREATE INDEX ledger_sends_newest_by_sender ON ledger_sends (sender_key, accepted_at, id);
    CREATE INDEX ledger_sends_newest_by_audience ON ledger_sends (audience_key, accepted_at, id);
    CREATE INDEX ledger_sends_newest_broadcasts ON ledger_sends (hub_key, accepted_at, id)
      WHERE \(mayBeBroadcastInPostgreSQL);
    CREATE TABLE ledger_sends_rest PARTITION OF ledger_sends DEFAULT WITH (fillfactor = 40);
    CREATE TABLE ledger_days (day integer PRIMARY KEY);

    CREATE TABLE ledger_totals (
      hub text COLLATE "C" NOT NULL,
      slot smallint NOT NULL,
      accepted bigint NOT NULL,
      settled bigint NOT NULL,
      no_target bigint NOT NULL,
      expired bigint NOT NULL,
      dead_lettered bigint NOT NULL,
      cancelled bigint NOT NULL,
      unannounced bigint NOT NULL,
      duplicates bigint NOT NULL,
      PRIMARY KEY (hub, slot)
    );
    CREATE TABLE ledger_device_totals (
      hub text COLLATE "C" NOT NULL,
      platform smallint NOT NULL,
      outcome smallint NOT NULL,
      slot smallint NOT NULL,
      devices bigint NOT NULL,
      PRIMARY KEY (hub, platform, outcome, slot)
    );
    """

  /// SQL condition: true for the audience of each broadcast, false for those of most other sends; see
  /// `Audience.isBroadcast(text:)`. Part of an index: it must never change.
  static let mayBeBroadcast = """
    substr(audience, 1, 13) <> 'registration/' AND substr(audience, 1, 7) <> 'device/' \
    AND (substr(audience, 1, 9) <> 'username:' OR instr(audience, ' && ') > 0 OR instr(audience, ' || ') > 0)
    """

  /// The same for PostgreSQL. Part of an index: it must never change.
  static let mayBeBroadcastInPostgreSQL = """
    audience NOT LIKE 'registration/%' AND audience NOT LIKE 'device/%' \
    AND (audience NOT LIKE 'username:%' OR audience LIKE '% && %' OR audience LIKE '% || %')
    """
}
