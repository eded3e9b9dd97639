package import PostgreSQL

/// The tables of the PostgreSQL database and their migrations.
package enum PostgreSQLSchema {
  /// The steps to the present schema.
  ///
  /// Plain SQL for PostgreSQL-compatible distributed engines, and tables that can be sharded: the primary key is the
  /// only unique one and begins with the hub and the column that look-ups use, and no table refers to another. Texts
  /// are compared by their bytes.
  ///
  /// - registrations: by id, so that a slice of the id space is one range of the key. A row without username is an
  ///   issued id, which `expires_at` limits. `platform` holds a platform's code. `created_at` is when the present
  ///   user registered first; `seen_at` is set if the app was seen after `registered_at`, `valid_until` if it gave an
  ///   end. Times are Unix milliseconds.
  /// - handles: the holder of each handle; concurrent claims of a handle meet at its key. An issued id that holds a
  ///   handle has no platform.
  /// - installations: the registration of each installation.
  /// - tags: a row repeats the columns of its registration that a push needs, so that a look-up reads one table (and
  ///   one shard); every change must update both.
  /// - send_claims: the requests with an `Idempotency-Key`, as digests.
  /// - broadcasts: the pages and the control of each broadcast; `pages` is 0 before the plan, `next_push_at` is in
  ///   microseconds; `rate` is per second, 0 if unlimited.
  /// - broadcast_pages: the finished pages.
  /// - scheduled_sends: the records to be produced later; as the table of the same name in ``SQLiteSchema``.
  /// - push_quotas: the end of the workers' reservations of a platform's quota, in microseconds.
  /// - import_batches: the imported byte ranges of each file of registrations, with their results.
  /// - caller_quotas, open_broadcasts, scheduled_use, quarantine: as the tables of the same names in ``SQLiteSchema``.
  /// - api_keys: `digest` is that of the key's secret, `scopes` their names with spaces between them, `last_used_day`
  ///   the start of a day.
  /// - templates: the versions of the hubs' templates; as the table of the same name in ``SQLiteSchema``.
  ///
  /// A registration with a template of its own has another `platform` and `handle`, and no `installation`; see
  /// ``TemplateRow``. `profile` is the `DeviceProfile` as JSON.
  package static let migration = SchemaMigration(
    component: "registry",
    steps: [
      """
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
        PRIMARY KEY (hub, id),
        CHECK (CASE WHEN username IS NULL
          THEN platform IS NULL AND tags IS NULL AND installation IS NULL AND created_at IS NULL AND expires_at IS NOT NULL
          ELSE platform IS NOT NULL AND tags IS NOT NULL AND handle IS NOT NULL AND created_at IS NOT NULL AND expires_at IS NULL
          END)
      );
      CREATE INDEX pending_expiry ON registrations (expires_at) WHERE expires_at IS NOT NULL;

      CREATE TABLE handles (
        hub text COLLATE "C" NOT NULL,
        handle text COLLATE "C" NOT NULL,
        registration uuid NOT NULL,
        platform smallint,
        registered_at bigint NOT NULL,
        PRIMARY KEY (hub, handle)
      );

      CREATE TABLE installations (
        hub text COLLATE "C" NOT NULL,
        installation text COLLATE "C" NOT NULL,
        registration uuid NOT NULL,
        PRIMARY KEY (hub, installation)
      );

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

      CREATE TABLE tombstones (
        hub text COLLATE "C" NOT NULL,
        registration uuid NOT NULL,
        cause text NOT NULL,
        detail text NOT NULL,
        at bigint NOT NULL,
        PRIMARY KEY (hub, registration)
      );
      CREATE INDEX tombstone_age ON tombstones (at);
      CREATE INDEX tombstones_by_time ON tombstones (hub, at, registration);

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
      );
      CREATE INDEX send_claim_expiry ON send_claims (expires_at);

      CREATE TABLE broadcasts (
        hub text COLLATE "C" NOT NULL,
        send uuid NOT NULL,
        pages bigint NOT NULL DEFAULT 0,
        is_announced boolean NOT NULL DEFAULT false,
        course text NOT NULL DEFAULT 'running',
        cause text NOT NULL DEFAULT 'accepted',
        next_push_at bigint NOT NULL DEFAULT 0,
        planned_at bigint,
        touched_at bigint NOT NULL,
        PRIMARY KEY (hub, send)
      );
      CREATE INDEX broadcast_age ON broadcasts (touched_at);

      CREATE TABLE broadcast_pages (
        hub text COLLATE "C" NOT NULL,
        send uuid NOT NULL,
        page bigint NOT NULL,
        finished_at bigint NOT NULL,
        PRIMARY KEY (hub, send, page)
      );
      CREATE INDEX broadcast_page_age ON broadcast_pages (finished_at);

      CREATE TABLE probe (id integer PRIMARY KEY, count bigint NOT NULL);
      INSERT INTO probe VALUES (1, 0);
      """,
      """
      CREATE TABLE scheduled_sends (
        hub text COLLATE "C" NOT NULL,
        id uuid NOT NULL,
        sender text COLLATE "C",
        audience text COLLATE "C" NOT NULL,
        record bytea NOT NULL,
        scheduled_at bigint NOT NULL,
        state text COLLATE "C" NOT NULL,
        ready_at bigint NOT NULL,
        lease uuid,
        forget_at bigint,
        PRIMARY KEY (hub, id)
      );
      CREATE INDEX scheduled_send_due ON scheduled_sends (ready_at) WHERE state = 'held';
      CREATE INDEX scheduled_send_newest ON scheduled_sends (hub, scheduled_at, id);
      CREATE INDEX scheduled_send_end ON scheduled_sends (forget_at) WHERE forget_at IS NOT NULL;
      """,
      """
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
      );
      CREATE INDEX import_batch_age ON import_batches (finished_at);
      """,
      """
      CREATE TABLE push_quotas (
        hub text COLLATE "C" NOT NULL,
        platform smallint NOT NULL,
        reserved_until bigint NOT NULL,
        PRIMARY KEY (hub, platform)
      );
      """,
      """
      DROP INDEX scheduled_send_newest;
      CREATE INDEX scheduled_send_waiting ON scheduled_sends (hub, scheduled_at, id)
        WHERE state IN ('held', 'paused') AND lease IS NULL;
      CREATE INDEX scheduled_send_waiting_by_sender ON scheduled_sends (hub, sender, scheduled_at, id)
        WHERE state IN ('held', 'paused') AND lease IS NULL;
      CREATE INDEX scheduled_send_waiting_by_audience ON scheduled_sends (hub, audience, scheduled_at, id)
        WHERE state IN ('held', 'paused') AND lease IS NULL;
      """,
      """
      CREATE TABLE caller_quotas (
        hub text COLLATE "C" NOT NULL,
        username text COLLATE "C" NOT NULL,
        quota text COLLATE "C" NOT NULL,
        reserved_until bigint NOT NULL,
        idle_at bigint NOT NULL,
        PRIMARY KEY (hub, username, quota)
      );
      CREATE INDEX caller_quota_idle ON caller_quotas (idle_at);
      CREATE TABLE open_broadcasts (
        hub text COLLATE "C" NOT NULL,
        username text COLLATE "C" NOT NULL,
        send uuid NOT NULL,
        ends_at bigint NOT NULL,
        PRIMARY KEY (hub, username, send)
      );
      CREATE INDEX open_broadcast_end ON open_broadcasts (ends_at);
      CREATE TABLE scheduled_use (
        hub text COLLATE "C" NOT NULL,
        username text COLLATE "C" NOT NULL,
        sends bigint NOT NULL,
        bytes bigint NOT NULL,
        counted_at bigint NOT NULL,
        PRIMARY KEY (hub, username)
      );
      CREATE INDEX scheduled_use_age ON scheduled_use (counted_at);
      ALTER TABLE scheduled_sends ADD COLUMN bytes bigint;
      UPDATE scheduled_sends SET bytes = octet_length(record);
      CREATE INDEX scheduled_send_use ON scheduled_sends (hub, sender, state, bytes)
        WHERE state IN ('held', 'paused', 'cancelled');
      """,
      """
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
        PRIMARY KEY (hub, id)
      );
      CREATE INDEX quarantined_handle ON quarantine (hub, handle);
      CREATE INDEX quarantined_installation ON quarantine (hub, installation) WHERE installation IS NOT NULL;
      CREATE INDEX quarantine_order ON quarantine (hub, dropped_at, id);
      CREATE INDEX quarantine_end ON quarantine (ends_at);
      """,
      """
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
      );
      """,
      """
      ALTER TABLE broadcasts ADD COLUMN rate bigint;
      ALTER TABLE broadcasts ADD COLUMN segments bigint NOT NULL DEFAULT 0;
      """,
      """
      ALTER TABLE tombstones ADD COLUMN username text COLLATE "C";
      UPDATE tombstones AS t SET username = q.username FROM quarantine AS q WHERE q.hub = t.hub AND q.id = t.registration;
      CREATE INDEX tombstones_by_user ON tombstones (hub, username, at, registration) WHERE username IS NOT NULL;
      """,
      """
      ALTER TABLE registrations ADD COLUMN profile text;
      ALTER TABLE quarantine ADD COLUMN profile text;
      CREATE INDEX template_handles ON handles (hub) WHERE platform > 7;
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
      """,
      """
      CREATE INDEX template_end ON templates (removed_at) WHERE removed_at IS NOT NULL;
      UPDATE templates SET removed_at = (
        SELECT n.created_at FROM templates AS n
        WHERE n.hub = templates.hub AND n.name = templates.name AND n.version = templates.version + 1
      ) WHERE removed_at IS NULL;
      """,
      """
      ALTER TABLE registrations ADD COLUMN valid_until bigint;
      ALTER TABLE quarantine ADD COLUMN valid_until bigint;
      """,
    ])
}
