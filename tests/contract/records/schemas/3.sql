CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE locks (
    repository TEXT PRIMARY KEY,
    fence {int} NOT NULL,
    owner TEXT NOT NULL,
    run TEXT NOT NULL,
    beat_at {int} NOT NULL
);
CREATE TABLE runs (
    repository TEXT NOT NULL,
    id TEXT NOT NULL,
    job TEXT NOT NULL,
    policy TEXT NOT NULL,
    action TEXT NOT NULL,
    started_at {int} NOT NULL,
    ended_at {int},
    state TEXT NOT NULL,
    fence {int} NOT NULL,
    ended_fence {int},
    refs {int} NOT NULL DEFAULT 0,
    edits {int} NOT NULL DEFAULT 0,
    objects {int} NOT NULL,
    bytes {int} NOT NULL,
    measure TEXT NOT NULL DEFAULT '',
    stored_objects {int} NOT NULL DEFAULT 0,
    stored_bytes {int} NOT NULL DEFAULT 0,
    period {int},
    agreed {int} NOT NULL DEFAULT 0,
    PRIMARY KEY (repository, id)
);
CREATE TABLE batches (
    repository TEXT NOT NULL,
    run TEXT NOT NULL,
    number {int} NOT NULL,
    file TEXT NOT NULL,
    asked {int} NOT NULL,
    removed {int} NOT NULL DEFAULT 0,
    gone {int} NOT NULL DEFAULT 0,
    failed {int} NOT NULL DEFAULT 0,
    held_again {int} NOT NULL,
    removed_bytes {int} NOT NULL DEFAULT 0,
    recorded_at {int},
    tables {int} NOT NULL DEFAULT 0,
    PRIMARY KEY (repository, run, number)
);
CREATE TABLE tombstones (
    repository TEXT NOT NULL,
    address TEXT NOT NULL,
    run TEXT NOT NULL,
    rule TEXT NOT NULL,
    condemned_at {int} NOT NULL,
    size_bytes {int} NOT NULL DEFAULT 0,
    batch {int} NOT NULL DEFAULT -1,
    state TEXT NOT NULL DEFAULT 'condemned',
    restored_at {int},
    PRIMARY KEY (repository, address)
);
CREATE INDEX tombstones_by_run ON tombstones (repository, run, batch);
CREATE INDEX tombstones_unsettled ON tombstones (repository) WHERE state NOT IN ('removed', 'already gone', 'trashed');
CREATE TABLE policies (
    repository TEXT NOT NULL,
    job TEXT NOT NULL,
    document TEXT NOT NULL,
    set_at {int} NOT NULL,
    agreed TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (repository, job)
);
CREATE TABLE holds (
    repository TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    reason TEXT NOT NULL,
    made_at {int} NOT NULL,
    until {int},
    inserted {int} NOT NULL,
    PRIMARY KEY (repository, id)
);
CREATE TABLE watermarks (
    repository TEXT NOT NULL,
    job TEXT NOT NULL,
    run TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (repository, job)
);
CREATE TABLE delete_budgets (
    repository TEXT PRIMARY KEY,
    given_out {int} NOT NULL,
    as_of {int} NOT NULL
);
CREATE TABLE repositories (
    uid TEXT PRIMARY KEY,
    uri TEXT NOT NULL,
    secret TEXT NOT NULL,
    made_at {int} NOT NULL,
    clock_right_at {int},
    quiet_since {int},
    quiet_seen_at {int}
);
CREATE TABLE revisions (
    repository TEXT NOT NULL,
    number {int} NOT NULL,
    mark TEXT NOT NULL,
    refs TEXT NOT NULL,
    commits TEXT NOT NULL,
    seen_at {int} NOT NULL,
    PRIMARY KEY (repository, number)
);
