CREATE TABLE fanfare_versions (
    component text NOT NULL,
    version integer NOT NULL
);
CREATE TABLE ledger_acknowledgements (
    topic text NOT NULL COLLATE pg_catalog."C",
    part integer NOT NULL,
    log_offset bigint NOT NULL,
    reason text NOT NULL,
    acknowledged_at bigint NOT NULL
);
CREATE TABLE ledger_attempts (
    day integer NOT NULL,
    hub text NOT NULL COLLATE pg_catalog."C",
    send uuid NOT NULL,
    attempt bytea NOT NULL,
    settled_parts bigint NOT NULL,
    state smallint NOT NULL,
    settled_at bigint NOT NULL,
    counts bytea,
    devices bytea,
    failures bytea,
    times bytea
);
CREATE TABLE ledger_days (
    day integer NOT NULL
);
CREATE TABLE ledger_device_totals (
    hub text NOT NULL COLLATE pg_catalog."C",
    platform smallint NOT NULL,
    outcome smallint NOT NULL,
    slot smallint NOT NULL,
    devices bigint NOT NULL
);
CREATE TABLE ledger_duplicates (
    day integer NOT NULL,
    hub text NOT NULL COLLATE pg_catalog."C",
    send uuid NOT NULL,
    part bigint NOT NULL,
    digest bigint NOT NULL
);
CREATE TABLE ledger_parts (
    day integer NOT NULL,
    hub text NOT NULL COLLATE pg_catalog."C",
    send uuid NOT NULL,
    attempt bytea NOT NULL,
    part bigint NOT NULL,
    span integer NOT NULL,
    digest bigint NOT NULL
);
CREATE TABLE ledger_positions (
    topic text NOT NULL COLLATE pg_catalog."C",
    part integer NOT NULL,
    next_offset bigint NOT NULL
);
CREATE TABLE ledger_sends (
    hub text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    day integer NOT NULL,
    accepted_at bigint NOT NULL,
    known_parts bigint DEFAULT 1 NOT NULL,
    settled_parts bigint NOT NULL,
    settled_at bigint,
    digest bigint,
    state smallint,
    change smallint DEFAULT 0 NOT NULL,
    is_announced boolean NOT NULL,
    hub_key bigint NOT NULL,
    sender_key bigint,
    audience_key bigint NOT NULL,
    sender text COLLATE pg_catalog."C",
    audience text NOT NULL COLLATE pg_catalog."C",
    counts bytea,
    devices bytea,
    failures bytea,
    times bytea
)
PARTITION BY RANGE (day);
CREATE TABLE ledger_sends_20717 (
    hub text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    day integer NOT NULL,
    accepted_at bigint NOT NULL,
    known_parts bigint DEFAULT 1 NOT NULL,
    settled_parts bigint NOT NULL,
    settled_at bigint,
    digest bigint,
    state smallint,
    change smallint DEFAULT 0 NOT NULL,
    is_announced boolean NOT NULL,
    hub_key bigint NOT NULL,
    sender_key bigint,
    audience_key bigint NOT NULL,
    sender text COLLATE pg_catalog."C",
    audience text NOT NULL COLLATE pg_catalog."C",
    counts bytea,
    devices bytea,
    failures bytea,
    times bytea
)
WITH (fillfactor='40');
CREATE TABLE ledger_sends_rest (
    hub text NOT NULL COLLATE pg_catalog."C",
    id uuid NOT NULL,
    day integer NOT NULL,
    accepted_at bigint NOT NULL,
    known_parts bigint DEFAULT 1 NOT NULL,
    settled_parts bigint NOT NULL,
    settled_at bigint,
    digest bigint,
    state smallint,
    change smallint DEFAULT 0 NOT NULL,
    is_announced boolean NOT NULL,
    hub_key bigint NOT NULL,
    sender_key bigint,
    audience_key bigint NOT NULL,
    sender text COLLATE pg_catalog."C",
    audience text NOT NULL COLLATE pg_catalog."C",
    counts bytea,
    devices bytea,
    failures bytea,
    times bytea
)
WITH (fillfactor='40');
CREATE TABLE ledger_totals (
    hub text NOT NULL COLLATE pg_catalog."C",
    slot smallint NOT NULL,
    accepted bigint NOT NULL,
    settled bigint NOT NULL,
    no_target bigint NOT NULL,
    expired bigint NOT NULL,
    dead_lettered bigint NOT NULL,
    cancelled bigint NOT NULL,
    unannounced bigint NOT NULL,
    duplicates bigint NOT NULL
);
ALTER TABLE ONLY ledger_sends ATTACH PARTITION ledger_sends_20717 FOR VALUES FROM (20717) TO (20718);
ALTER TABLE ONLY ledger_sends ATTACH PARTITION ledger_sends_rest DEFAULT;
INSERT INTO fanfare_versions VALUES ('ledger', 1);
INSERT INTO ledger_attempts VALUES (20717, 'default', '019f0000-0000-7000-8000-00000000000a', '\x0000000000000001000000000000000103', 1, 1, 1790000070000, '\x110214022202250243024602', NULL, NULL, NULL);
INSERT INTO ledger_attempts VALUES (20717, 'default', '019f0000-0000-7000-8000-00000000000b', '\x0000000000000001000000000000000102', 1, 1, 1790000071000, NULL, '\x0000000000000007000000000000000011c8010100', NULL, NULL);
INSERT INTO ledger_attempts VALUES (20717, 'default', '019f0000-0000-7000-8000-00000000000b', '\x0000000000000002000000000000000203', 1, 1, 1790000071000, NULL, '\x', NULL, NULL);
INSERT INTO ledger_days VALUES (20717);
INSERT INTO ledger_device_totals VALUES ('default', 1, 1, 28, 1);
INSERT INTO ledger_device_totals VALUES ('default', 1, 4, 28, 1);
INSERT INTO ledger_device_totals VALUES ('default', 2, 2, 28, 1);
INSERT INTO ledger_device_totals VALUES ('default', 2, 5, 28, 1);
INSERT INTO ledger_device_totals VALUES ('default', 4, 3, 28, 1);
INSERT INTO ledger_device_totals VALUES ('default', 4, 6, 28, 1);
INSERT INTO ledger_device_totals VALUES ('default', 1, 1, 12, 1);
INSERT INTO ledger_device_totals VALUES ('default', 1, 4, 12, 1);
INSERT INTO ledger_device_totals VALUES ('default', 2, 2, 12, 1);
INSERT INTO ledger_device_totals VALUES ('default', 2, 5, 12, 1);
INSERT INTO ledger_device_totals VALUES ('default', 4, 3, 12, 1);
INSERT INTO ledger_device_totals VALUES ('default', 4, 6, 12, 1);
INSERT INTO ledger_device_totals VALUES ('default', 1, 1, 0, 6);
INSERT INTO ledger_device_totals VALUES ('default', 1, 4, 0, 6);
INSERT INTO ledger_device_totals VALUES ('default', 2, 2, 0, 9);
INSERT INTO ledger_device_totals VALUES ('default', 2, 5, 0, 6);
INSERT INTO ledger_device_totals VALUES ('default', 4, 3, 0, 6);
INSERT INTO ledger_device_totals VALUES ('default', 4, 6, 0, 6);
INSERT INTO ledger_duplicates VALUES (20717, 'default', '019f0000-0000-7000-8000-000000000001', 0, 1781274413457202960);
INSERT INTO ledger_parts VALUES (20717, 'default', '019f0000-0000-7000-8000-000000000009', '\x0000000000000001000000000000000103', 0, 1, 7920496882223037986);
INSERT INTO ledger_parts VALUES (20717, 'default', '019f0000-0000-7000-8000-000000000009', '\x0000000000000001000000000000000103', 1, 1, -121763457840144438);
INSERT INTO ledger_parts VALUES (20717, 'default', '019f0000-0000-7000-8000-000000000009', '\x0000000000000001000000000000000103', 2, 1, 1531396842447655331);
INSERT INTO ledger_parts VALUES (20717, 'default', '019f0000-0000-7000-8000-00000000000a', '\x0000000000000001000000000000000103', 1, 1, -7695533674732001453);
INSERT INTO ledger_parts VALUES (20717, 'default', '019f0000-0000-7000-8000-00000000000b', '\x0000000000000001000000000000000102', 0, 1, -244923033304539382);
INSERT INTO ledger_parts VALUES (20717, 'default', '019f0000-0000-7000-8000-00000000000b', '\x0000000000000002000000000000000203', 0, 1, -7890207923575239737);
INSERT INTO ledger_positions VALUES ('test.status', 0, 6);
INSERT INTO ledger_positions VALUES ('test.sends', 0, 3);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000006', 20717, 1790000006000, 1, 0, NULL, NULL, NULL, 0, true, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', NULL, NULL, NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000001', 20717, 1790000001000, 1, 1, 1790000061000, 6499706603343948529, 1, 2, true, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', NULL, '\x0000000000000007000000000000000011c801010000000000000000070000000000000001229003010e426164446576696365546f6b656e00000000000000070000000000000002439003010e426164446576696365546f6b656e', NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000002', 20717, 1790000002000, 1, 1, 1790000062000, -6731324704263256826, 2, 2, true, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', NULL, '\x', NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000003', 20717, 1790000003000, 1, 1, 1790000063000, -7758912298884222435, 3, 2, true, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', NULL, '\x', NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000004', 20717, 1790000004000, 1, 1, 1790000064000, -6865099470315468998, 4, 2, true, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', NULL, '\x', NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000005', 20717, 1790000005000, 1, 1, 1790000065000, -281651062393413330, 5, 2, true, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', NULL, '\x', NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000007', 20717, 1790000007000, 1, 1, 1790000067000, 4363535434517333924, 1, 0, false, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', NULL, '\x00000000000000070000000000000003149003010e426164446576696365546f6b656e00000000000000070000000000000004259003010e426164446576696365546f6b656e00000000000000070000000000000005469003010e426164446576696365546f6b656e', NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000008', 20717, 1790000008000, 1, 1, 1790000068000, 1316788475604147808, 1, 0, true, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', '\x110114012201250143014601', NULL, '\x14010e426164446576696365546f6b656e25010e426164446576696365546f6b656e22010e426164446576696365546f6b656e43010e426164446576696365546f6b656e46010e426164446576696365546f6b656e', NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-000000000009', 20717, 1790000009000, 3, 3, 1790000069000, NULL, 1, 0, false, -7433891273608499558, -7824038632935893729, 7148839662889862138, 'alice', '*', '\x110614062209250643064606', NULL, '\x22030e426164446576696365546f6b656e', NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-00000000000a', 20717, 1790000010000, 3, 0, NULL, NULL, NULL, 0, false, -7433891273608499558, -7824038632935893729, 7148839662889862138, 'alice', '*', NULL, '\x', NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-00000000000b', 20717, 1790000011000, 3, 0, NULL, NULL, NULL, 0, false, -7433891273608499558, -7824038632935893729, 7148839662889862138, 'alice', '*', NULL, '\x', NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('other', '019f0000-0000-7000-8000-00000000000c', 20717, 1790000012000, 1, 0, NULL, NULL, NULL, 0, true, -7891166239745511825, 4407635918424856060, 8897539510197192072, 'alice', 'username:bob', NULL, NULL, NULL, NULL);
INSERT INTO ledger_sends_20717 VALUES ('default', '019f0000-0000-7000-8000-00000000000e', 20717, 1790000014000, 1, 0, NULL, NULL, NULL, 0, true, -7433891273608499558, NULL, -7828112895087317771, NULL, 'device/apns', NULL, NULL, NULL, NULL);
INSERT INTO ledger_sends_rest VALUES ('default', '019f0000-0000-7000-8000-00000000000d', 20677, 1786544000000, 1, 0, NULL, NULL, NULL, 0, true, -7433891273608499558, -7824038632935893729, 2795972352302425269, 'alice', 'username:bob', NULL, NULL, NULL, NULL);
INSERT INTO ledger_totals VALUES ('default', 44, 6, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO ledger_totals VALUES ('default', 28, 1, 6, 1, 1, 1, 1, 1, 0);
INSERT INTO ledger_totals VALUES ('default', 12, 1, 1, 0, 0, 0, 0, 0, 1);
INSERT INTO ledger_totals VALUES ('default', 0, 3, 1, 0, 0, 0, 0, 3, 0);
INSERT INTO ledger_totals VALUES ('default', 11, 2, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO ledger_totals VALUES ('other', 11, 1, 0, 0, 0, 0, 0, 0, 0);
ALTER TABLE ONLY fanfare_versions
    ADD CONSTRAINT fanfare_versions_pkey PRIMARY KEY (component);
ALTER TABLE ONLY ledger_acknowledgements
    ADD CONSTRAINT ledger_acknowledgements_pkey PRIMARY KEY (topic, part, log_offset);
ALTER TABLE ONLY ledger_attempts
    ADD CONSTRAINT ledger_attempts_pkey PRIMARY KEY (day, hub, send, attempt);
ALTER TABLE ONLY ledger_days
    ADD CONSTRAINT ledger_days_pkey PRIMARY KEY (day);
ALTER TABLE ONLY ledger_device_totals
    ADD CONSTRAINT ledger_device_totals_pkey PRIMARY KEY (hub, platform, outcome, slot);
ALTER TABLE ONLY ledger_duplicates
    ADD CONSTRAINT ledger_duplicates_pkey PRIMARY KEY (day, hub, send, part, digest);
ALTER TABLE ONLY ledger_parts
    ADD CONSTRAINT ledger_parts_pkey PRIMARY KEY (day, hub, send, attempt, part);
ALTER TABLE ONLY ledger_positions
    ADD CONSTRAINT ledger_positions_pkey PRIMARY KEY (topic, part);
ALTER TABLE ONLY ledger_sends
    ADD CONSTRAINT ledger_sends_pkey PRIMARY KEY (id, hub, day);
ALTER TABLE ONLY ledger_sends_20717
    ADD CONSTRAINT ledger_sends_20717_pkey PRIMARY KEY (id, hub, day);
ALTER TABLE ONLY ledger_sends_rest
    ADD CONSTRAINT ledger_sends_rest_pkey PRIMARY KEY (id, hub, day);
ALTER TABLE ONLY ledger_totals
    ADD CONSTRAINT ledger_totals_pkey PRIMARY KEY (hub, slot);
CREATE INDEX ledger_sends_newest_by_audience ON ONLY ledger_sends USING btree (audience_key, accepted_at, id);
CREATE INDEX ledger_sends_20717_audience_key_accepted_at_id_idx ON ledger_sends_20717 USING btree (audience_key, accepted_at, id);
CREATE INDEX ledger_sends_newest ON ONLY ledger_sends USING btree (hub_key, accepted_at, id);
CREATE INDEX ledger_sends_20717_hub_key_accepted_at_id_idx ON ledger_sends_20717 USING btree (hub_key, accepted_at, id);
CREATE INDEX ledger_sends_newest_broadcasts ON ONLY ledger_sends USING btree (hub_key, accepted_at, id) WHERE ((audience !~~ 'registration/%'::text) AND (audience !~~ 'device/%'::text) AND ((audience !~~ 'username:%'::text) OR (audience ~~ '% && %'::text) OR (audience ~~ '% || %'::text)));
CREATE INDEX ledger_sends_20717_hub_key_accepted_at_id_idx1 ON ledger_sends_20717 USING btree (hub_key, accepted_at, id) WHERE ((audience !~~ 'registration/%'::text) AND (audience !~~ 'device/%'::text) AND ((audience !~~ 'username:%'::text) OR (audience ~~ '% && %'::text) OR (audience ~~ '% || %'::text)));
CREATE INDEX ledger_sends_newest_by_sender ON ONLY ledger_sends USING btree (sender_key, accepted_at, id);
CREATE INDEX ledger_sends_20717_sender_key_accepted_at_id_idx ON ledger_sends_20717 USING btree (sender_key, accepted_at, id);
CREATE INDEX ledger_sends_rest_audience_key_accepted_at_id_idx ON ledger_sends_rest USING btree (audience_key, accepted_at, id);
CREATE INDEX ledger_sends_rest_hub_key_accepted_at_id_idx ON ledger_sends_rest USING btree (hub_key, accepted_at, id);
CREATE INDEX ledger_sends_rest_hub_key_accepted_at_id_idx1 ON ledger_sends_rest USING btree (hub_key, accepted_at, id) WHERE ((audience !~~ 'registration/%'::text) AND (audience !~~ 'device/%'::text) AND ((audience !~~ 'username:%'::text) OR (audience ~~ '% && %'::text) OR (audience ~~ '% || %'::text)));
CREATE INDEX ledger_sends_rest_sender_key_accepted_at_id_idx ON ledger_sends_rest USING btree (sender_key, accepted_at, id);
ALTER INDEX ledger_sends_newest_by_audience ATTACH PARTITION ledger_sends_20717_audience_key_accepted_at_id_idx;
ALTER INDEX ledger_sends_newest ATTACH PARTITION ledger_sends_20717_hub_key_accepted_at_id_idx;
ALTER INDEX ledger_sends_newest_broadcasts ATTACH PARTITION ledger_sends_20717_hub_key_accepted_at_id_idx1;
ALTER INDEX ledger_sends_pkey ATTACH PARTITION ledger_sends_20717_pkey;
ALTER INDEX ledger_sends_newest_by_sender ATTACH PARTITION ledger_sends_20717_sender_key_accepted_at_id_idx;
ALTER INDEX ledger_sends_newest_by_audience ATTACH PARTITION ledger_sends_rest_audience_key_accepted_at_id_idx;
ALTER INDEX ledger_sends_newest ATTACH PARTITION ledger_sends_rest_hub_key_accepted_at_id_idx;
ALTER INDEX ledger_sends_newest_broadcasts ATTACH PARTITION ledger_sends_rest_hub_key_accepted_at_id_idx1;
ALTER INDEX ledger_sends_pkey ATTACH PARTITION ledger_sends_rest_pkey;
ALTER INDEX ledger_sends_newest_by_sender ATTACH PARTITION ledger_sends_rest_sender_key_accepted_at_id_idx;
