package import Store

/// The tables of the registry.
package enum RegistrySchema {
  /// The steps to the present schema.
  ///
  /// Plain SQL for PostgreSQL-compatible distributed engines, and tables that can be sharded: the primary key is the
  /// only unique one and begins with the hub and the column that look-ups use, and no table refers to another. Texts
  /// are compared by their bytes. Times are Unix milliseconds.
  ///
  /// - registrations: by id, so that a slice of the id space is one range of the key. A row without username is an
  ///   issued id, which `expires_at` limits. `platform` holds a platform's code. `created_at` is when the present
  ///   user registered first; `seen_at` is set if the app was seen after `registered_at`, `valid_until` if it gave an
  ///   end. A registration with a template of its own has another `platform` and `handle`, and no `installation`; see
  ///   ``TemplateRow``. `profile` is the `DeviceProfile` as JSON. In SQLite `tags` has one tag per line.
  /// - tags: a row repeats the columns of its registration that a push needs, so that a look-up reads one table (and
  ///   one shard); every change must update both. Broadcasts walk the key: the ids under a tag, in order. In SQLite the
  ///   tag comes before the hub in the key, so that the first column decides nearly every comparison of a search.
  /// - handles, in PostgreSQL: the holder of each handle; concurrent claims of a handle meet at its key. An issued id
  ///   that holds a handle has no platform. In SQLite the index `one_holder` does the same.
  /// - installations, in PostgreSQL: the registration of each installation.
  /// - send_claims: the requests with an `Idempotency-Key`, as digests. A row costs about 130 bytes for a day.
  /// - broadcasts: the pages and the control of each broadcast; `pages` is 0 before the plan, `next_push_at` is in
  ///   microseconds; `rate` is per second, 0 if unlimited.
  /// - broadcast_pages: the finished pages.
  /// - scheduled_sends: the records to be produced later. `ready_at` says when a send may be taken: at its time or, if
  ///   it has a `lease`, at the end of the lease. Rows stay for a while after the send and may far outnumber the
  ///   waiting ones, so lists are read from partial indexes of the waiting rows.
  /// - push_quotas: the end of the workers' reservations of a platform's quota, in microseconds.
  /// - import_batches: the imported byte ranges of each file of registrations, with their results.
  /// - caller_quotas: the end of a user's reservations of each rate, in microseconds; `idle_at` is the same in
  ///   milliseconds, after which the row is not needed.
  /// - open_broadcasts: the large broadcasts of each user that may still be running.
  /// - scheduled_use: at least what each user's scheduled sends take; too much until it is counted again.
  /// - quarantine: registrations of dead handles and surplus devices, until they are dropped for good.
  /// - api_keys: `digest` is that of the key's secret, `scopes` their names with spaces between them, `last_used_day`
  ///   the start of a day.
  /// - templates: the versions of the hubs' templates, with the texts of all locales as JSON. `removed_at` is the time
  ///   when the version was replaced or removed.
  package static let migration = SchemaMigration(
    component: "registry",
    // "FnRg"
    applicationID: 0x466E_5267,
    steps: [
      SchemaMigration.Step(
        common,
        sqlite: """
          CREATE UNIQUE INDEX one_holder ON registrations (hub, handle) WHERE handle IS NOT NULL;
          CREATE UNIQUE INDEX one_per_installation ON registrations (hub, installation) WHERE installation IS NOT NULL;
          CREATE TABLE tags (
            hub TEXT NOT NULL,
            tag TEXT NOT NULL,
            registration BLOB NOT NULL,
            platform INTEGER NOT NULL,
            handle TEXT NOT NULL,
            registered_at INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            PRIMARY KEY (tag, hub, registration)
          ) WITHOUT ROWID;
          """,
        postgreSQL: """
          CREATE TABLE tags (
            hub text COLLATE "C" NOT NULL,
            tag text COLLATE "C" NOT NULL,
            registration uuid NOT NULL,
            platform smallint NOT NULL,
            handle text COLLATE "C" NOT NULL,
            registered_at bigint NOT NULL,
            created_at bigint NOT NULL,
            PRIMARY KEY (hub, tag, registration)
          );
          CREATE TABLE handles (
            hub text COLLATE "C" NOT NULL,
            handle text COLLATE "C" NOT NULL,
            registration uuid NOT NULL,
            platform smallint,
            registered_at bigint NOT NULL,
            PRIMARY KEY (hub, handle)
          );
          CREATE INDEX template_handles ON handles (hub) WHERE platform > 63;
          CREATE TABLE installations (
            hub text COLLATE "C" NOT NULL,
            installation text COLLATE "C" NOT NULL,
            registration uuid NOT NULL,
            PRIMARY KEY (hub, installation)
          );
          """)
    ])

  private static let common = """
    CREATE TABLE registrations (
      hub text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      username text COLLATE "C",
      platform smallint,
      handle text COLLATE "C",
      installation text COLLATE "C",
      tags text[],
      registered_at bigint NOT NULL,
      created_at bigint,
      seen_at bigint,
      expires_at bigint,
      profile text,
      valid_until bigint,
      PRIMARY KEY (hub, id),
      CHECK (CASE WHEN username IS NULL
        THEN platform IS NULL AND tags IS NULL AND installation IS NULL AND created_at IS NULL AND expires_at IS NOT NULL
        ELSE platform IS NOT NULL AND tags IS NOT NULL AND handle IS NOT NULL AND created_at IS NOT NULL AND expires_at IS NULL
        END)
    ) WITHOUT ROWID;
    CREATE INDEX pending_expiry ON registrations (expires_at) WHERE expires_at IS NOT NULL;

    CREATE TABLE quarantine (
      hub text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      username text COLLATE "C" NOT NULL,
      platform smallint NOT NULL,
      handle text COLLATE "C" NOT NULL,
      installation text COLLATE "C",
      tags text[] NOT NULL,
      registered_at bigint NOT NULL,
      created_at bigint NOT NULL,
      seen_at bigint,
      dropped_at bigint NOT NULL,
      ends_at bigint NOT NULL,
      profile text,
      valid_until bigint,
      PRIMARY KEY (hub, id)
    ) WITHOUT ROWID;
    CREATE INDEX quarantined_handle ON quarantine (hub, handle);
    CREATE INDEX quarantined_installation ON quarantine (hub, installation) WHERE installation IS NOT NULL;
    CREATE INDEX quarantine_order ON quarantine (hub, dropped_at, id);
    CREATE INDEX quarantine_end ON quarantine (ends_at);

    CREATE TABLE tombstones (
      hub text COLLATE "C" NOT NULL,
      registration uuid NOT NULL,
      cause text COLLATE "C" NOT NULL,
      detail text NOT NULL,
      at bigint NOT NULL,
      username text COLLATE "C",
      PRIMARY KEY (hub, registration)
    ) WITHOUT ROWID;
    CREATE INDEX tombstone_age ON tombstones (at);
    CREATE INDEX tombstones_by_time ON tombstones (hub, at, registration);
    CREATE INDEX tombstones_by_user ON tombstones (hub, username, at, registration) WHERE username IS NOT NULL;

    CREATE TABLE secure_payloads (
      hub text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      recipient text COLLATE "C" NOT NULL,
      payload bytea NOT NULL,
      is_read boolean NOT NULL DEFAULT false,
      expires_at bigint NOT NULL,
      PRIMARY KEY (hub, id)
    );
    CREATE INDEX secure_payload_expiry ON secure_payloads (expires_at);

    CREATE TABLE send_claims (
      hub text COLLATE "C" NOT NULL,
      key bytea NOT NULL,
      request bytea NOT NULL,
      at bigint NOT NULL,
      expires_at bigint NOT NULL,
      is_settled boolean NOT NULL DEFAULT false,
      PRIMARY KEY (hub, key)
    ) WITHOUT ROWID;
    CREATE INDEX send_claim_expiry ON send_claims (expires_at);

    CREATE TABLE broadcasts (
      hub text COLLATE "C" NOT NULL,
      send uuid NOT NULL,
      pages bigint NOT NULL DEFAULT 0,
      segments bigint NOT NULL DEFAULT 0,
      is_announced boolean NOT NULL DEFAULT false,
      course text NOT NULL DEFAULT 'running',
      cause text NOT NULL DEFAULT 'accepted',
      rate bigint,
      next_push_at bigint NOT NULL DEFAULT 0,
      planned_at bigint,
      touched_at bigint NOT NULL,
      PRIMARY KEY (hub, send)
    ) WITHOUT ROWID;
    CREATE INDEX broadcast_age ON broadcasts (touched_at);

    CREATE TABLE broadcast_pages (
      hub text COLLATE "C" NOT NULL,
      send uuid NOT NULL,
      page bigint NOT NULL,
      finished_at bigint NOT NULL,
      PRIMARY KEY (hub, send, page)
    ) WITHOUT ROWID;
    CREATE INDEX broadcast_page_age ON broadcast_pages (finished_at);

    CREATE TABLE scheduled_sends (
      hub text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      sender text COLLATE "C",
      audience text COLLATE "C" NOT NULL,
      record bytea NOT NULL,
      bytes bigint NOT NULL,
      scheduled_at bigint NOT NULL,
      state text COLLATE "C" NOT NULL,
      ready_at bigint NOT NULL,
      lease uuid,
      forget_at bigint,
      PRIMARY KEY (hub, id)
    );
    CREATE INDEX scheduled_send_due ON scheduled_sends (ready_at) WHERE state = 'held';
    CREATE INDEX scheduled_send_end ON scheduled_sends (forget_at) WHERE forget_at IS NOT NULL;
    CREATE INDEX scheduled_send_waiting ON scheduled_sends (hub, scheduled_at, id)
      WHERE state IN ('held', 'paused') AND lease IS NULL;
    CREATE INDEX scheduled_send_waiting_by_sender ON scheduled_sends (hub, sender, scheduled_at, id)
      WHERE state IN ('held', 'paused') AND lease IS NULL;
    CREATE INDEX scheduled_send_waiting_by_audience ON scheduled_sends (hub, audience, scheduled_at, id)
      WHERE state IN ('held', 'paused') AND lease IS NULL;
    CREATE INDEX scheduled_send_use ON scheduled_sends (hub, sender, state, bytes)
      WHERE state IN ('held', 'paused', 'cancelled');

    CREATE TABLE import_batches (
      hub text COLLATE "C" NOT NULL,
      file uuid NOT NULL,
      first_byte bigint NOT NULL,
      next_byte bigint NOT NULL,
      finished_at bigint NOT NULL,
      lines bigint NOT NULL,
      imported bigint NOT NULL,
      replaced bigint NOT NULL,
      unchanged bigint NOT NULL,
      outdated bigint NOT NULL,
      skipped bigint NOT NULL,
      PRIMARY KEY (hub, file, first_byte)
    ) WITHOUT ROWID;
    CREATE INDEX import_batch_age ON import_batches (finished_at);

    CREATE TABLE push_quotas (
      hub text COLLATE "C" NOT NULL,
      platform smallint NOT NULL,
      reserved_until bigint NOT NULL,
      PRIMARY KEY (hub, platform)
    ) WITHOUT ROWID;

    CREATE TABLE caller_quotas (
      hub text COLLATE "C" NOT NULL,
      username text COLLATE "C" NOT NULL,
      quota text COLLATE "C" NOT NULL,
      reserved_until bigint NOT NULL,
      idle_at bigint NOT NULL,
      PRIMARY KEY (hub, username, quota)
    ) WITHOUT ROWID;
    CREATE INDEX caller_quota_idle ON caller_quotas (idle_at);

    CREATE TABLE open_broadcasts (
      hub text COLLATE "C" NOT NULL,
      username text COLLATE "C" NOT NULL,
      send uuid NOT NULL,
      ends_at bigint NOT NULL,
      PRIMARY KEY (hub, username, send)
    ) WITHOUT ROWID;
    CREATE INDEX open_broadcast_end ON open_broadcasts (ends_at);

    CREATE TABLE scheduled_use (
      hub text COLLATE "C" NOT NULL,
      username text COLLATE "C" NOT NULL,
      sends bigint NOT NULL,
      bytes bigint NOT NULL,
      counted_at bigint NOT NULL,
      PRIMARY KEY (hub, username)
    ) WITHOUT ROWID;
    CREATE INDEX scheduled_use_age ON scheduled_use (counted_at);

    CREATE TABLE api_keys (
      hub text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      username text COLLATE "C" NOT NULL,
      scopes text COLLATE "C" NOT NULL,
      comment text COLLATE "C" NOT NULL,
      digest bytea NOT NULL CHECK (length(digest) = 32),
      created_at bigint NOT NULL,
      expires_at bigint,
      last_used_day bigint,
      PRIMARY KEY (hub, id)
    ) WITHOUT ROWID;

    CREATE TABLE templates (
      hub text COLLATE "C" NOT NULL,
      name text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      default_locale text NOT NULL,
      variants text NOT NULL,
      created_at bigint NOT NULL,
      removed_at bigint,
      PRIMARY KEY (hub, name, version)
    );
    CREATE INDEX template_end ON templates (removed_at) WHERE removed_at IS NOT NULL;

    """
}
