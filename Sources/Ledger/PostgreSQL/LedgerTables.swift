import PostgreSQL

/// The tables in a PostgreSQL database.
enum LedgerTables {
  /// The steps to the present schema.
  ///
  /// Codes are those of `StoredCode`; times are Unix milliseconds; a day is one of acceptance, counted from 1970. Texts
  /// are compared by their bytes. Columns that are not described here are those of the SQLite file; see `Schema`.
  ///
  /// - ledger_sends: a partition for each day that is younger than the retention, and one for the rest: what is open
  ///   for longer, and days that cannot be. `change` tells what the statement that wrote the row last did to it; see
  ///   `BatchTransaction`. The indexes beyond the key are those that lists are read from, by numbers that stand for
  ///   names; see `ListKey`. Rows are changed once, so pages have room for that.
  /// - ledger_days: the days that have a partition. Who makes or drops one locks its row, and so does who writes to an
  ///   old one.
  /// - ledger_attempts, ledger_parts, ledger_duplicates: as in the file.
  /// - ledger_totals, ledger_device_totals: sums per hub and slot; each ledger takes one of a few slots.
  static let migration = SchemaMigration(
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
      """
    ])
}
