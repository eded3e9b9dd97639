CREATE TABLE api_keys (
    hub text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    username text NOT NULL COLLATE pg_catalog."C",
    scopes text NOT NULL COLLATE pg_catalog."C",
    comment text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_day bigint,
    CONSTRAINT api_keys_digest_check CHECK ((length(digest) = 32))
);
CREATE TABLE broadcast_pages (
    hub text NOT NULL COLLATE pg_catalog."C",
    send uuid NOT NULL,
    page bigint NOT NULL,
    finished_at bigint NOT NULL
);
CREATE TABLE broadcasts (
    hub text NOT NULL COLLATE pg_catalog."C",
    send uuid NOT NULL,
    pages bigint DEFAULT 0 NOT NULL,
    segments bigint DEFAULT 0 NOT NULL,
    is_announced boolean DEFAULT false NOT NULL,
    course text DEFAULT 'running'::text NOT NULL,
    cause text DEFAULT 'accepted'::text NOT NULL,
    rate bigint,
    next_push_at bigint DEFAULT 0 NOT NULL,
    planned_at bigint,
    touched_at bigint NOT NULL
);
CREATE TABLE caller_quotas (
    hub text NOT NULL COLLATE pg_catalog."C",
    username text NOT NULL COLLATE pg_catalog."C",
    quota text NOT NULL COLLATE pg_catalog."C",
    reserved_until bigint NOT NULL,
    idle_at bigint NOT NULL
);
CREATE TABLE fanfare_versions (
    component text NOT NULL,
    version integer NOT NULL
);
CREATE TABLE handles (
    hub text NOT NULL COLLATE pg_catalog."C",
    handle text NOT NULL COLLATE pg_catalog."C",
    registration uuid NOT NULL,
    platform smallint,
    registered_at bigint NOT NULL
);
CREATE TABLE import_batches (
    hub text NOT NULL COLLATE pg_catalog."C",
    file uuid NOT NULL,
    first_byte bigint NOT NULL,
    next_byte bigint NOT NULL,
    finished_at bigint NOT NULL,
    lines bigint NOT NULL,
    imported bigint NOT NULL,
    replaced bigint NOT NULL,
    unchanged bigint NOT NULL,
    outdated bigint NOT NULL,
    skipped bigint NOT NULL
);
CREATE TABLE installations (
    hub text NOT NULL COLLATE pg_catalog."C",
    installation text NOT NULL COLLATE pg_catalog."C",
    registration uuid NOT NULL
);
CREATE TABLE open_broadcasts (
    hub text NOT NULL COLLATE pg_catalog."C",
    username text NOT NULL COLLATE pg_catalog."C",
    send uuid NOT NULL,
    ends_at bigint NOT NULL
);
CREATE TABLE push_quotas (
    hub text NOT NULL COLLATE pg_catalog."C",
    platform smallint NOT NULL,
    reserved_until bigint NOT NULL
);
CREATE TABLE quarantine (
    hub text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    username text NOT NULL COLLATE pg_catalog."C",
    platform smallint NOT NULL,
    handle text NOT NULL COLLATE pg_catalog."C",
    installation text COLLATE pg_catalog."C",
    tags text[] NOT NULL,
    registered_at bigint NOT NULL,
    created_at bigint NOT NULL,
    seen_at bigint,
    dropped_at bigint NOT NULL,
    ends_at bigint NOT NULL,
    profile text,
    valid_until bigint
);
CREATE TABLE registrations (
    hub text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    username text COLLATE pg_catalog."C",
    platform smallint,
    handle text COLLATE pg_catalog."C",
    installation text COLLATE pg_catalog."C",
    tags text[],
    registered_at bigint NOT NULL,
    created_at bigint,
    seen_at bigint,
    expires_at bigint,
    profile text,
    valid_until bigint,
    CONSTRAINT registrations_check CHECK (
CASE
    WHEN (username IS NULL) THEN ((platform IS NULL) AND (tags IS NULL) AND (installation IS NULL) AND (created_at IS NULL) AND (expires_at IS NOT NULL))
    ELSE ((platform IS NOT NULL) AND (tags IS NOT NULL) AND (handle IS NOT NULL) AND (created_at IS NOT NULL) AND (expires_at IS NULL))
END)
);
CREATE TABLE scheduled_sends (
    hub text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    sender text COLLATE pg_catalog."C",
    audience text NOT NULL COLLATE pg_catalog."C",
    record bytea NOT NULL,
    bytes bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    ready_at bigint NOT NULL,
    lease uuid,
    forget_at bigint
);
CREATE TABLE scheduled_use (
    hub text NOT NULL COLLATE pg_catalog."C",
    username text NOT NULL COLLATE pg_catalog."C",
    sends bigint NOT NULL,
    bytes bigint NOT NULL,
    counted_at bigint NOT NULL
);
CREATE TABLE secure_payloads (
    hub text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    recipient text NOT NULL COLLATE pg_catalog."C",
    payload bytea NOT NULL,
    is_read boolean DEFAULT false NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE send_claims (
    hub text NOT NULL COLLATE pg_catalog."C",
    key bytea NOT NULL,
    request bytea NOT NULL,
    at bigint NOT NULL,
    expires_at bigint NOT NULL,
    is_settled boolean DEFAULT false NOT NULL
);
CREATE TABLE tags (
    hub text NOT NULL COLLATE pg_catalog."C",
    tag text NOT NULL COLLATE pg_catalog."C",
    registration uuid NOT NULL,
    platform smallint NOT NULL,
    handle text NOT NULL COLLATE pg_catalog."C",
    registered_at bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE templates (
    hub text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    default_locale text NOT NULL,
    variants text NOT NULL,
    created_at bigint NOT NULL,
    removed_at bigint
);
CREATE TABLE tombstones (
    hub text NOT NULL COLLATE pg_catalog."C",
    registration uuid NOT NULL,
    cause text NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL,
    at bigint NOT NULL,
    username text COLLATE pg_catalog."C"
);
INSERT INTO broadcast_pages VALUES ('default', '019f0000-0000-7000-8000-000000000003', 0, 1790000005000);
INSERT INTO broadcast_pages VALUES ('default', '019f0000-0000-7000-8000-000000000003', 1, 1790000005000);
INSERT INTO broadcast_pages VALUES ('default', '019f0000-0000-7000-8000-000000000003', 2, 1790000005000);
INSERT INTO broadcast_pages VALUES ('default', '019f0000-0000-7000-8000-000000000003', 7, 1790000005000);
INSERT INTO broadcasts VALUES ('default', '019f0000-0000-7000-8000-000000000001', 0, 0, false, 'running', 'accepted', NULL, 1790000005000000, NULL, 1790000000000);
INSERT INTO broadcasts VALUES ('default', '019f0000-0000-7000-8000-000000000002', 20, 0, false, 'running', 'accepted', NULL, 0, 1790000000000, 1790000000000);
INSERT INTO broadcasts VALUES ('default', '019f0000-0000-7000-8000-000000000003', 10, 0, true, 'running', 'accepted', NULL, 0, 1790000000000, 1790000000000);
INSERT INTO broadcasts VALUES ('default', '019f0000-0000-7000-8000-000000000004', 10, 0, false, 'paused', 'failures', NULL, 0, 1790000000000, 1790000000000);
INSERT INTO broadcasts VALUES ('default', '019f0000-0000-7000-8000-000000000005', 0, 0, false, 'cancelled', 'caller', NULL, 0, NULL, 1790000000000);
INSERT INTO fanfare_versions VALUES ('registry', 1);
INSERT INTO handles VALUES ('default', 'https://db5.notify.windows.com/?token=a', '00000003-0000-4000-8000-000000000003', 4, 1788220800000);
INSERT INTO handles VALUES ('default', 'token:2', '00000002-0000-4000-8000-000000000002', 2, 1790000000000);
INSERT INTO handles VALUES ('default', 'token:7', '00000007-0000-4000-8000-000000000007', 2, 1790000000000);
INSERT INTO handles VALUES ('shop', '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', '00000001-0000-4000-8000-000000000001', 1, 1790000000000);
INSERT INTO handles VALUES ('shop', 'https://db5.notify.windows.com/?token=a', '00000003-0000-4000-8000-000000000003', 4, 1788220800000);
INSERT INTO handles VALUES ('shop', 'token:4', '00000004-0000-4000-8000-000000000004', 2, 1790000000000);
INSERT INTO handles VALUES ('shop', 'token:5', '00000005-0000-4000-8000-000000000005', 2, 1790000000000);
INSERT INTO handles VALUES ('shop', 'token:6', '00000006-0000-4000-8000-000000000006', 2, 1577836800000);
INSERT INTO handles VALUES ('default', 'pending', '059ee16b-d206-496f-a3ea-6afdc2242be1', NULL, 1790000000000);
INSERT INTO handles VALUES ('default', '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', '00000001-0000-4000-8000-000000000001', 1, 1790000001000);
INSERT INTO handles VALUES ('shop', 'token:7', '00000002-0000-4000-8000-000000000002', 2, 1790000004000);
INSERT INTO import_batches VALUES ('default', '00000000-0000-0003-0000-000000000004', 0, 1000, 1790000000000, 7, 7, 0, 0, 0, 0);
INSERT INTO installations VALUES ('default', 'phone-2', '00000002-0000-4000-8000-000000000002');
INSERT INTO push_quotas VALUES ('default', 2, 1790000003049998);
INSERT INTO registrations VALUES ('default', '00000002-0000-4000-8000-000000000002', 'bob', 2, 'token:2', 'phone-2', '{installation:phone-2,news,username:bob}', 1790000000000, 1790000000000, NULL, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('default', '00000003-0000-4000-8000-000000000003', 'Zoë', 4, 'https://db5.notify.windows.com/?token=a', NULL, '{a:b#1.x@y-z_,username:Zoë}', 1788220800000, 1767225600000, 1789862400000, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('default', '00000007-0000-4000-8000-000000000007', 'dave', 2, 'token:7', NULL, '{username:dave}', 1790000000000, 1790000000000, NULL, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('shop', '00000001-0000-4000-8000-000000000001', 'bob', 1, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', NULL, '{news,sports,username:bob}', 1790000000000, 1790000000000, NULL, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('shop', '00000003-0000-4000-8000-000000000003', 'Zoë', 4, 'https://db5.notify.windows.com/?token=a', NULL, '{a:b#1.x@y-z_,username:Zoë}', 1788220800000, 1767225600000, 1789862400000, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('shop', '00000004-0000-4000-8000-000000000004', 'carol', 2, 'token:4', NULL, '{username:carol}', 1790000000000, 1790000000000, NULL, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('shop', '00000005-0000-4000-8000-000000000005', 'carol', 2, 'token:5', NULL, '{username:carol}', 1790000000000, 1790000000000, NULL, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('shop', '00000006-0000-4000-8000-000000000006', 'dave', 2, 'token:6', NULL, '{username:dave}', 1577836800000, 1577836800000, NULL, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('default', '059ee16b-d206-496f-a3ea-6afdc2242be1', NULL, NULL, 'pending', NULL, NULL, 1790000000000, NULL, NULL, 1790003600000, NULL, NULL);
INSERT INTO registrations VALUES ('default', '00000001-0000-4000-8000-000000000001', 'bob', 1, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', NULL, '{late,news,username:bob}', 1790000001000, 1790000000000, NULL, NULL, NULL, NULL);
INSERT INTO registrations VALUES ('shop', '00000002-0000-4000-8000-000000000002', 'bob', 2, 'token:7', NULL, '{username:bob}', 1790000004000, 1790000000000, NULL, NULL, NULL, NULL);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-00000000000e', 'alice', 'username:bob', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303065222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a33342e3030305a222c2264617461223a7b22687562223a2264656661756c74222c2273656e646572223a22616c696365222c22746f223a7b2275736572223a22626f62227d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 237, 1790000000014, 'held', 1790000014000, NULL, NULL);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-00000000000f', 'alice', 'username:bob', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303066222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a33352e3030305a222c2264617461223a7b22687562223a2264656661756c74222c2273656e646572223a22616c696365222c22746f223a7b2275736572223a22626f62227d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 237, 1790000000015, 'held', 1790000015000, NULL, NULL);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-000000000010', 'alice', 'username:bob', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303130222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a33362e3030305a222c2264617461223a7b22687562223a2264656661756c74222c2273656e646572223a22616c696365222c22746f223a7b2275736572223a22626f62227d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 237, 1790000000016, 'held', 1790000016000, NULL, NULL);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-000000000014', NULL, 'username:bob', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303134222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a34302e3030305a222c2264617461223a7b22687562223a2264656661756c74222c22746f223a7b2275736572223a22626f62227d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 220, 1790000000020, 'held', 1790000020000, NULL, NULL);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-000000000015', 'alice', '*', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303135222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a34312e3030305a222c2264617461223a7b22687562223a2264656661756c74222c2273656e646572223a22616c696365222c22746f223a7b2265766572796f6e65223a747275657d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 240, 1790000000021, 'held', 1790000021000, NULL, NULL);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-00000000000b', 'alice', 'username:bob', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303062222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a33312e3030305a222c2264617461223a7b22687562223a2264656661756c74222c2273656e646572223a22616c696365222c22746f223a7b2275736572223a22626f62227d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 237, 1790000000011, 'held', 1790000030000, '00000000-0000-0001-0000-000000000002', NULL);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-00000000000a', 'alice', 'username:bob', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303061222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a33302e3030305a222c2264617461223a7b22687562223a2264656661756c74222c2273656e646572223a22616c696365222c22746f223a7b2275736572223a22626f62227d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 237, 1790000000010, 'fired', 1790000030000, '00000000-0000-0001-0000-000000000002', 1790086411000);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-00000000000c', 'alice', 'username:bob', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303063222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a33322e3030305a222c2264617461223a7b22687562223a2264656661756c74222c2273656e646572223a22616c696365222c22746f223a7b2275736572223a22626f62227d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 237, 1790000000012, 'paused', 1790000012000, NULL, NULL);
INSERT INTO scheduled_sends VALUES ('default', '019f0000-0000-7000-8000-00000000000d', 'alice', 'username:bob', '\x7b227370656376657273696f6e223a22312e30222c226964223a2230313966303030302d303030302d373030302d383030302d303030303030303030303064222c2274797065223a2266616e666172652e73656e642e7631222c22736f75726365223a222f66616e666172652f617069222c2274696d65223a22323032362d30392d32315431343a31333a33332e3030305a222c2264617461223a7b22687562223a2264656661756c74222c2273656e646572223a22616c696365222c22746f223a7b2275736572223a22626f62227d2c226d657373616765223a7b22626f6479223a2268656c6c6f227d7d7d', 237, 1790000000013, 'cancelled', 1790000013000, NULL, 1792678400000);
INSERT INTO scheduled_use VALUES ('default', 'alice', 8, 1899, 1790000000000);
INSERT INTO secure_payloads VALUES ('default', '00000000-0000-0005-0000-000000000001', 'bob', '\x736563726574203120c3bc', false, 1790086400000);
INSERT INTO secure_payloads VALUES ('default', '00000000-0000-0005-0000-000000000002', 'bob', '\x736563726574203220c3bc', true, 1790086400000);
INSERT INTO send_claims VALUES ('default', '\x0101010101010101010101010101010101010101010101010101010101010101', '\x6565656565656565656565656565656565656565656565656565656565656565', 1790000001000, 1790086401000, false);
INSERT INTO send_claims VALUES ('shop', '\x0202020202020202020202020202020202020202020202020202020202020202', '\x6666666666666666666666666666666666666666666666666666666666666666', 1790000002000, 1790086402000, false);
INSERT INTO send_claims VALUES ('default', '\x0303030303030303030303030303030303030303030303030303030303030303', '\x6767676767676767676767676767676767676767676767676767676767676767', 1790000003000, 1790086403000, true);
INSERT INTO tags VALUES ('default', 'username:Zoë', '00000003-0000-4000-8000-000000000003', 4, 'https://db5.notify.windows.com/?token=a', 1788220800000, 1767225600000);
INSERT INTO tags VALUES ('default', 'username:bob', '00000002-0000-4000-8000-000000000002', 2, 'token:2', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('default', 'username:dave', '00000007-0000-4000-8000-000000000007', 2, 'token:7', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('default', 'a:b#1.x@y-z_', '00000003-0000-4000-8000-000000000003', 4, 'https://db5.notify.windows.com/?token=a', 1788220800000, 1767225600000);
INSERT INTO tags VALUES ('default', 'installation:phone-2', '00000002-0000-4000-8000-000000000002', 2, 'token:2', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('default', 'news', '00000002-0000-4000-8000-000000000002', 2, 'token:2', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('shop', 'username:Zoë', '00000003-0000-4000-8000-000000000003', 4, 'https://db5.notify.windows.com/?token=a', 1788220800000, 1767225600000);
INSERT INTO tags VALUES ('shop', 'username:bob', '00000001-0000-4000-8000-000000000001', 1, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('shop', 'username:carol', '00000004-0000-4000-8000-000000000004', 2, 'token:4', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('shop', 'username:carol', '00000005-0000-4000-8000-000000000005', 2, 'token:5', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('shop', 'username:dave', '00000006-0000-4000-8000-000000000006', 2, 'token:6', 1577836800000, 1577836800000);
INSERT INTO tags VALUES ('shop', 'a:b#1.x@y-z_', '00000003-0000-4000-8000-000000000003', 4, 'https://db5.notify.windows.com/?token=a', 1788220800000, 1767225600000);
INSERT INTO tags VALUES ('shop', 'news', '00000001-0000-4000-8000-000000000001', 1, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('shop', 'sports', '00000001-0000-4000-8000-000000000001', 1, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', 1790000000000, 1790000000000);
INSERT INTO tags VALUES ('default', 'late', '00000001-0000-4000-8000-000000000001', 1, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', 1790000001000, 1790000000000);
INSERT INTO tags VALUES ('default', 'news', '00000001-0000-4000-8000-000000000001', 1, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', 1790000001000, 1790000000000);
INSERT INTO tags VALUES ('default', 'username:bob', '00000001-0000-4000-8000-000000000001', 1, '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', 1790000001000, 1790000000000);
INSERT INTO tags VALUES ('shop', 'username:bob', '00000002-0000-4000-8000-000000000002', 2, 'token:7', 1790000004000, 1790000000000);
INSERT INTO tombstones VALUES ('default', '00000004-0000-4000-8000-000000000004', 'removed', '', 1790000001000, 'carol');
INSERT INTO tombstones VALUES ('default', '00000005-0000-4000-8000-000000000005', 'dead', 'UNREGISTERED', 1790000002000, 'carol');
INSERT INTO tombstones VALUES ('default', '00000006-0000-4000-8000-000000000006', 'expired', '', 1790000003000, 'dave');
INSERT INTO tombstones VALUES ('shop', '00000007-0000-4000-8000-000000000007', 'merged', '00000002-0000-4000-8000-000000000002', 1790000004000, 'dave');
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (hub, id);
ALTER TABLE ONLY broadcast_pages
    ADD CONSTRAINT broadcast_pages_pkey PRIMARY KEY (hub, send, page);
ALTER TABLE ONLY broadcasts
    ADD CONSTRAINT broadcasts_pkey PRIMARY KEY (hub, send);
ALTER TABLE ONLY caller_quotas
    ADD CONSTRAINT caller_quotas_pkey PRIMARY KEY (hub, username, quota);
ALTER TABLE ONLY fanfare_versions
    ADD CONSTRAINT fanfare_versions_pkey PRIMARY KEY (component);
ALTER TABLE ONLY handles
    ADD CONSTRAINT handles_pkey PRIMARY KEY (hub, handle);
ALTER TABLE ONLY import_batches
    ADD CONSTRAINT import_batches_pkey PRIMARY KEY (hub, file, first_byte);
ALTER TABLE ONLY installations
    ADD CONSTRAINT installations_pkey PRIMARY KEY (hub, installation);
ALTER TABLE ONLY open_broadcasts
    ADD CONSTRAINT open_broadcasts_pkey PRIMARY KEY (hub, username, send);
ALTER TABLE ONLY push_quotas
    ADD CONSTRAINT push_quotas_pkey PRIMARY KEY (hub, platform);
ALTER TABLE ONLY quarantine
    ADD CONSTRAINT quarantine_pkey PRIMARY KEY (hub, id);
ALTER TABLE ONLY registrations
    ADD CONSTRAINT registrations_pkey PRIMARY KEY (hub, id);
ALTER TABLE ONLY scheduled_sends
    ADD CONSTRAINT scheduled_sends_pkey PRIMARY KEY (hub, id);
ALTER TABLE ONLY scheduled_use
    ADD CONSTRAINT scheduled_use_pkey PRIMARY KEY (hub, username);
ALTER TABLE ONLY secure_payloads
    ADD CONSTRAINT secure_payloads_pkey PRIMARY KEY (hub, id);
ALTER TABLE ONLY send_claims
    ADD CONSTRAINT send_claims_pkey PRIMARY KEY (hub, key);
ALTER TABLE ONLY tags
    ADD CONSTRAINT tags_pkey PRIMARY KEY (hub, tag, registration);
ALTER TABLE ONLY templates
    ADD CONSTRAINT templates_pkey PRIMARY KEY (hub, name, version);
ALTER TABLE ONLY tombstones
    ADD CONSTRAINT tombstones_pkey PRIMARY KEY (hub, registration);
CREATE INDEX broadcast_age ON broadcasts USING btree (touched_at);
CREATE INDEX broadcast_page_age ON broadcast_pages USING btree (finished_at);
CREATE INDEX caller_quota_idle ON caller_quotas USING btree (idle_at);
CREATE INDEX import_batch_age ON import_batches USING btree (finished_at);
CREATE INDEX open_broadcast_end ON open_broadcasts USING btree (ends_at);
CREATE INDEX pending_expiry ON registrations USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX quarantine_end ON quarantine USING btree (ends_at);
CREATE INDEX quarantine_order ON quarantine USING btree (hub, dropped_at, id);
CREATE INDEX quarantined_handle ON quarantine USING btree (hub, handle);
CREATE INDEX quarantined_installation ON quarantine USING btree (hub, installation) WHERE (installation IS NOT NULL);
CREATE INDEX scheduled_send_due ON scheduled_sends USING btree (ready_at) WHERE (state = 'held'::text);
CREATE INDEX scheduled_send_end ON scheduled_sends USING btree (forget_at) WHERE (forget_at IS NOT NULL);
CREATE INDEX scheduled_send_use ON scheduled_sends USING btree (hub, sender, state, bytes) WHERE (state = ANY (ARRAY['held'::text, 'paused'::text, 'cancelled'::text]));
CREATE INDEX scheduled_send_waiting ON scheduled_sends USING btree (hub, scheduled_at, id) WHERE ((state = ANY (ARRAY['held'::text, 'paused'::text])) AND (lease IS NULL));
CREATE INDEX scheduled_send_waiting_by_audience ON scheduled_sends USING btree (hub, audience, scheduled_at, id) WHERE ((state = ANY (ARRAY['held'::text, 'paused'::text])) AND (lease IS NULL));
CREATE INDEX scheduled_send_waiting_by_sender ON scheduled_sends USING btree (hub, sender, scheduled_at, id) WHERE ((state = ANY (ARRAY['held'::text, 'paused'::text])) AND (lease IS NULL));
CREATE INDEX scheduled_use_age ON scheduled_use USING btree (counted_at);
CREATE INDEX secure_payload_expiry ON secure_payloads USING btree (expires_at);
CREATE INDEX send_claim_expiry ON send_claims USING btree (expires_at);
CREATE INDEX template_end ON templates USING btree (removed_at) WHERE (removed_at IS NOT NULL);
CREATE INDEX template_handles ON handles USING btree (hub) WHERE (platform > 63);
CREATE INDEX tombstone_age ON tombstones USING btree (at);
CREATE INDEX tombstones_by_time ON tombstones USING btree (hub, at, registration);
CREATE INDEX tombstones_by_user ON tombstones USING btree (hub, username, at, registration) WHERE (username IS NOT NULL);
