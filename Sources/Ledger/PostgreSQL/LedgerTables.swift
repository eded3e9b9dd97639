package import PostgreSQL

/// The PostgreSQL tables and their migrations.
package enum LedgerTables {
  /// The migrations. Codes are those of `StoredCode`; times are Unix milliseconds; a day is the day of acceptance, in
  /// days since 1970. Texts are compared by bytes. Columns not described here are those of SQLite; see `Schema`.
  ///
  /// - ledger_sends: a partition for each day within the retention, and the default partition; see `DayPartitions`.
  ///   `change` is what the last upsert did to the row; see `BatchTransaction`. The further indexes serve lists, by
  ///   hashes of names; see `ListKey`. Each row is updated about once: the fill factor leaves room for that.
  /// - ledger_days: the days that have a partition. Creating or dropping a partition locks its row, and so does writing
  ///   to an old one.
  /// - ledger_attempts, ledger_parts, ledger_duplicates: as in SQLite.
  /// - ledger_totals, ledger_device_totals: totals per hub and slot; each transaction picks one of the slots.
  package static let migration = SchemaMigration(
    component: "ledger",
    steps: [
      """
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
        PRIMARY KEY (id, hub, day)
      ) PARTITION BY RANGE (day);
      CREATE INDEX ledger_sends_newest ON ledger_sends (hub_key, accepted_at, id);
      CREATE INDEX ledger_sends_newest_by_sender ON ledger_sends (sender_key, accepted_at, id);
      CREATE INDEX ledger_sends_newest_by_audience ON ledger_sends (audience_key, accepted_at, id);
      CREATE TABLE ledger_sends_rest PARTITION OF ledger_sends DEFAULT WITH (fillfactor = 40);
      CREATE TABLE ledger_days (day integer PRIMARY KEY);

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
        PRIMARY KEY (day, hub, send, attempt)
      );
      CREATE TABLE ledger_parts (
        day integer NOT NULL,
        hub text COLLATE "C" NOT NULL,
        send uuid NOT NULL,
        attempt bytea NOT NULL,
        part bigint NOT NULL,
        digest bigint NOT NULL,
        PRIMARY KEY (day, hub, send, attempt, part)
      );
      CREATE TABLE ledger_duplicates (
        day integer NOT NULL,
        hub text COLLATE "C" NOT NULL,
        send uuid NOT NULL,
        part bigint NOT NULL,
        digest bigint NOT NULL,
        PRIMARY KEY (day, hub, send, part, digest)
      );

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
      CREATE TABLE ledger_positions (
        topic text COLLATE "C" NOT NULL,
        part integer NOT NULL,
        next_offset bigint NOT NULL,
        PRIMARY KEY (topic, part)
      );
      """,
      """
      CREATE TABLE ledger_acknowledgements (
        topic text COLLATE "C" NOT NULL,
        part integer NOT NULL,
        log_offset bigint NOT NULL,
        reason text NOT NULL,
        acknowledged_at bigint NOT NULL,
        PRIMARY KEY (topic, part, log_offset)
      );
      """,
      """
      ALTER TABLE ledger_sends ADD COLUMN failures bytea;
      ALTER TABLE ledger_attempts ADD COLUMN failures bytea;
      CREATE INDEX ledger_sends_newest_broadcasts ON ledger_sends (hub_key, accepted_at, id) WHERE \(mayBeBroadcast);
      """,
      "ALTER TABLE ledger_sends ADD COLUMN times bytea; ALTER TABLE ledger_attempts ADD COLUMN times bytea;",
      "ALTER TABLE ledger_parts ADD COLUMN span integer NOT NULL DEFAULT 1;",
    ])

  /// SQL condition for broadcasts; see `Schema.mayBeBroadcast`. Part of an index: it must never change.
  static let mayBeBroadcast = """
    audience NOT LIKE 'registration/%' AND audience NOT LIKE 'device/%' \
    AND (audience NOT LIKE 'username:%' OR audience LIKE '% && %' OR audience LIKE '% || %')
    """
}
