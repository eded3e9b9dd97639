import FanfareCore
import GRDB

/// The tables of the SQLite file and their migrations.
enum SQLiteSchema {
  /// Marks a registry's file (`PRAGMA application_id`): "FnRg".
  private static let applicationID: Int32 = 0x466E_5267

  /// The steps from an empty file to the present schema; `PRAGMA user_version` counts the finished ones. Only append.
  ///
  /// - registrations: clustered by id, so that a slice of the id space is one range. A row without user is an issued
  ///   id, which `expires_at` limits. `platform` holds a platform's code; `tags` one tag per line: the exact keys
  ///   of the rows in `tags`, which need no second index for that reason. Times are Unix milliseconds. `seen_at` is set
  ///   if the app was seen after `registered_at`, `valid_until` if its app gave an end.
  /// - tags: the tag comes before the hub in the key, so that the first column decides nearly every comparison of a
  ///   search. A row repeats the columns of its registration that a push needs, so that a look-up searches one tree
  ///   instead of two; every change must update both. Broadcasts walk the key: the ids under a tag, in order.
  ///   `created_at` is 0, before everything, in rows that a process of an earlier release writes.
  /// - send_claims: the requests with an `Idempotency-Key`, as digests. A row costs about 130 bytes for a day.
  /// - broadcasts: the pages and the control of each broadcast; `pages` is 0 before the plan, `next_push_at` is in
  ///   microseconds.
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
  /// - one_holder: at most one registration per hub holds a handle; this unique index enforces it.
  /// - templates: the versions of the hubs' templates, with the texts of all locales as JSON. `removed_at` is the time
  ///   when the version was replaced or removed.
  ///
  /// A registration with a template of its own has another `platform` and `handle`, and no `installation`; see
  /// ``TemplateRow``. `profile` is the `DeviceProfile` as JSON.
  private static let steps = [
    """
    CREATE TABLE registrations (
      hub TEXT NOT NULL,
      id BLOB NOT NULL CHECK (length(id) = 16),
      user TEXT,
      platform INTEGER,
      handle TEXT,
      installation TEXT,
      tags TEXT,
      registered_at INTEGER NOT NULL,
      expires_at INTEGER,
      PRIMARY KEY (hub, id),
      CHECK (CASE WHEN user IS NULL
        THEN platform IS NULL AND tags IS NULL AND installation IS NULL AND expires_at IS NOT NULL
        ELSE platform IS NOT NULL AND tags IS NOT NULL AND handle IS NOT NULL AND expires_at IS NULL END)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX one_holder ON registrations (hub, handle) WHERE handle IS NOT NULL;
    CREATE UNIQUE INDEX one_per_installation ON registrations (hub, installation) WHERE installation IS NOT NULL;
    CREATE INDEX pending_expiry ON registrations (expires_at) WHERE expires_at IS NOT NULL;

    CREATE TABLE tags (
      hub TEXT NOT NULL,
      tag TEXT NOT NULL,
      registration BLOB NOT NULL,
      PRIMARY KEY (tag, hub, registration)
    ) WITHOUT ROWID;

    CREATE TABLE tombstones (
      hub TEXT NOT NULL,
      registration BLOB NOT NULL,
      cause TEXT NOT NULL,
      detail TEXT NOT NULL,
      at INTEGER NOT NULL,
      PRIMARY KEY (hub, registration)
    ) WITHOUT ROWID;
    CREATE INDEX tombstone_age ON tombstones (at);

    CREATE TABLE secure_payloads (
      hub TEXT NOT NULL,
      id BLOB NOT NULL CHECK (length(id) = 16),
      recipient TEXT NOT NULL,
      payload BLOB NOT NULL,
      is_read INTEGER NOT NULL DEFAULT 0,
      expires_at INTEGER NOT NULL,
      PRIMARY KEY (hub, id)
    );
    CREATE INDEX secure_payload_expiry ON secure_payloads (expires_at);

    CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), count INTEGER NOT NULL);
    INSERT INTO probe VALUES (1, 0);
    """,
    """
    ALTER TABLE tags RENAME TO former_tags;
    CREATE TABLE tags (
      hub TEXT NOT NULL,
      tag TEXT NOT NULL,
      registration BLOB NOT NULL,
      platform INTEGER NOT NULL,
      handle TEXT NOT NULL,
      registered_at INTEGER NOT NULL,
      PRIMARY KEY (tag, hub, registration)
    ) WITHOUT ROWID;
    INSERT INTO tags
      SELECT t.hub, t.tag, t.registration, r.platform, r.handle, r.registered_at FROM former_tags AS t
      JOIN registrations AS r ON r.hub = t.hub AND r.id = t.registration
      ORDER BY t.tag, t.hub, t.registration;
    DROP TABLE former_tags;
    """,
    """
    CREATE TABLE send_claims (
      hub TEXT NOT NULL,
      key BLOB NOT NULL CHECK (length(key) = 32),
      request BLOB NOT NULL CHECK (length(request) = 32),
      at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      is_settled INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (hub, key)
    ) WITHOUT ROWID;
    CREATE INDEX send_claim_expiry ON send_claims (expires_at);
    """,
    """
    CREATE TABLE broadcasts (
      hub TEXT NOT NULL,
      send BLOB NOT NULL CHECK (length(send) = 16),
      pages INTEGER NOT NULL DEFAULT 0,
      is_announced INTEGER NOT NULL DEFAULT 0,
      course TEXT NOT NULL DEFAULT 'running',
      cause TEXT NOT NULL DEFAULT 'accepted',
      next_push_at INTEGER NOT NULL DEFAULT 0,
      planned_at INTEGER,
      touched_at INTEGER NOT NULL,
      PRIMARY KEY (hub, send)
    ) WITHOUT ROWID;
    CREATE INDEX broadcast_age ON broadcasts (touched_at);
    CREATE TABLE broadcast_pages (
      hub TEXT NOT NULL, send BLOB NOT NULL, page INTEGER NOT NULL, finished_at INTEGER NOT NULL,
      PRIMARY KEY (hub, send, page)
    ) WITHOUT ROWID;
    CREATE INDEX broadcast_page_age ON broadcast_pages (finished_at);
    """,
    """
    ALTER TABLE registrations ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
    UPDATE registrations SET created_at = registered_at;
    ALTER TABLE registrations ADD COLUMN seen_at INTEGER;
    ALTER TABLE tags ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
    UPDATE tags SET created_at = registered_at;
    """,
    """
    CREATE TABLE scheduled_sends (
      hub TEXT NOT NULL,
      id BLOB NOT NULL CHECK (length(id) = 16),
      sender TEXT,
      audience TEXT NOT NULL,
      record BLOB NOT NULL,
      scheduled_at INTEGER NOT NULL,
      state TEXT NOT NULL,
      ready_at INTEGER NOT NULL,
      lease BLOB,
      forget_at INTEGER,
      PRIMARY KEY (hub, id)
    );
    CREATE INDEX scheduled_send_due ON scheduled_sends (ready_at) WHERE state = 'held';
    CREATE INDEX scheduled_send_newest ON scheduled_sends (hub, scheduled_at, id);
    CREATE INDEX scheduled_send_end ON scheduled_sends (forget_at) WHERE forget_at IS NOT NULL;
    """,
    """
    CREATE TABLE import_batches (
      hub TEXT NOT NULL,
      file BLOB NOT NULL CHECK (length(file) = 16),
      first_byte INTEGER NOT NULL,
      next_byte INTEGER NOT NULL,
      finished_at INTEGER NOT NULL,
      lines INTEGER NOT NULL,
      imported INTEGER NOT NULL,
      replaced INTEGER NOT NULL,
      unchanged INTEGER NOT NULL,
      outdated INTEGER NOT NULL,
      skipped INTEGER NOT NULL,
      PRIMARY KEY (hub, file, first_byte)
    ) WITHOUT ROWID;
    CREATE INDEX import_batch_age ON import_batches (finished_at);
    """,
    """
    CREATE TABLE push_quotas (
      hub TEXT NOT NULL,
      platform INTEGER NOT NULL,
      reserved_until INTEGER NOT NULL,
      PRIMARY KEY (hub, platform)
    ) WITHOUT ROWID;
    """,
    """
    CREATE INDEX scheduled_send_waiting ON scheduled_sends (hub, scheduled_at, id)
      WHERE state IN ('held', 'paused') AND lease IS NULL;
    CREATE INDEX scheduled_send_waiting_by_sender ON scheduled_sends (hub, sender, scheduled_at, id)
      WHERE state IN ('held', 'paused') AND lease IS NULL;
    CREATE INDEX scheduled_send_waiting_by_audience ON scheduled_sends (hub, audience, scheduled_at, id)
      WHERE state IN ('held', 'paused') AND lease IS NULL;
    DROP INDEX scheduled_send_newest;
    """,
    """
    CREATE TABLE caller_quotas (
      hub TEXT NOT NULL,
      username TEXT NOT NULL,
      quota TEXT NOT NULL,
      reserved_until INTEGER NOT NULL,
      idle_at INTEGER NOT NULL,
      PRIMARY KEY (hub, username, quota)
    ) WITHOUT ROWID;
    CREATE INDEX caller_quota_idle ON caller_quotas (idle_at);
    CREATE TABLE open_broadcasts (
      hub TEXT NOT NULL,
      username TEXT NOT NULL,
      send BLOB NOT NULL CHECK (length(send) = 16),
      ends_at INTEGER NOT NULL,
      PRIMARY KEY (hub, username, send)
    ) WITHOUT ROWID;
    CREATE INDEX open_broadcast_end ON open_broadcasts (ends_at);
    CREATE TABLE scheduled_use (
      hub TEXT NOT NULL,
      username TEXT NOT NULL,
      sends INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      counted_at INTEGER NOT NULL,
      PRIMARY KEY (hub, username)
    ) WITHOUT ROWID;
    CREATE INDEX scheduled_use_age ON scheduled_use (counted_at);
    ALTER TABLE scheduled_sends ADD COLUMN bytes INTEGER;
    UPDATE scheduled_sends SET bytes = length(record);
    CREATE INDEX scheduled_send_use ON scheduled_sends (hub, sender, state, bytes)
      WHERE state IN ('held', 'paused', 'cancelled');
    """,
    """
    CREATE TABLE quarantine (
      hub TEXT NOT NULL,
      id BLOB NOT NULL CHECK (length(id) = 16),
      username TEXT NOT NULL,
      platform INTEGER NOT NULL,
      handle TEXT NOT NULL,
      installation TEXT,
      tags TEXT NOT NULL,
      registered_at INTEGER NOT NULL,
      created_at INTEGER NOT NULL,
      seen_at INTEGER,
      dropped_at INTEGER NOT NULL,
      ends_at INTEGER NOT NULL,
      PRIMARY KEY (hub, id)
    ) WITHOUT ROWID;
    CREATE INDEX quarantined_handle ON quarantine (hub, handle);
    CREATE INDEX quarantined_installation ON quarantine (hub, installation) WHERE installation IS NOT NULL;
    CREATE INDEX quarantine_order ON quarantine (hub, dropped_at, id);
    CREATE INDEX quarantine_end ON quarantine (ends_at);
    """,
    """
    CREATE TABLE api_keys (
      hub TEXT NOT NULL,
      id TEXT NOT NULL,
      user TEXT NOT NULL,
      scopes TEXT NOT NULL,
      comment TEXT NOT NULL,
      digest BLOB NOT NULL CHECK (length(digest) = 32),
      created_at INTEGER NOT NULL,
      expires_at INTEGER,
      last_used_day INTEGER,
      PRIMARY KEY (hub, id)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE broadcasts ADD COLUMN rate INTEGER;
    ALTER TABLE broadcasts ADD COLUMN segments INTEGER NOT NULL DEFAULT 0;
    """,
    """
    ALTER TABLE tombstones ADD COLUMN username TEXT;
    UPDATE tombstones SET username = (
      SELECT username FROM quarantine AS q WHERE q.hub = tombstones.hub AND q.id = tombstones.registration);
    CREATE INDEX tombstones_by_user ON tombstones (hub, username, at) WHERE username IS NOT NULL;
    """,
    """
    ALTER TABLE registrations ADD COLUMN profile TEXT;
    ALTER TABLE quarantine ADD COLUMN profile TEXT;
    CREATE TABLE templates (
      hub TEXT NOT NULL,
      name TEXT NOT NULL,
      version INTEGER NOT NULL,
      default_locale TEXT NOT NULL,
      variants TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      removed_at INTEGER,
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
    ALTER TABLE registrations ADD COLUMN valid_until INTEGER;
    ALTER TABLE quarantine ADD COLUMN valid_until INTEGER;
    """,
  ]

  /// Runs the missing steps in one write transaction that includes the check of the version: of two processes that
  /// start at once, the second finds everything done.
  ///
  /// Throws `RegistryFileError` when the file is another database or was made by a later release.
  static func migrate(_ db: Database) throws {
    try db.inTransaction(.immediate) {
      let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
      let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
      let isEmpty = try Row.fetchOne(db, sql: "SELECT 1 FROM sqlite_master LIMIT 1") == nil
      guard application == applicationID || (application == 0 && version == 0 && isEmpty) else {
        throw RegistryFileError("it is a database of another application")
      }
      guard version <= steps.count else {
        throw RegistryFileError("it was made by a later release (schema \(version), this one knows \(steps.count))")
      }
      guard version < steps.count else { return .commit }
      for step in steps[version...] { try db.execute(sql: step) }
      try db.execute(sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = \(steps.count)")
      return .commit
    }
  }
}
