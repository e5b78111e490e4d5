CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE repositories (
    name TEXT PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    default_branch TEXT NOT NULL,
    created_at {int} NOT NULL,
    generation {int} NOT NULL,
    journal_from {int} NOT NULL DEFAULT 0,
    edited {int} NOT NULL DEFAULT 0,
    commit_rows {int} NOT NULL DEFAULT 0,
    branch_rows {int} NOT NULL DEFAULT 0,
    tag_rows {int} NOT NULL DEFAULT 0,
    hold_rows {int} NOT NULL DEFAULT 0,
    kept_since {int},
    recovered {int} NOT NULL DEFAULT -1,
    ask_again_from {int},
    clock_right_at {int},
    quiet_since {int},
    quiet_seen_at {int},
    secret TEXT NOT NULL,
    ticket_life {int} NOT NULL,
    discard_after {int},
    discard_share TEXT NOT NULL DEFAULT '',
    manual_now {int}
);
CREATE TABLE commits (
    repository TEXT NOT NULL,
    id TEXT NOT NULL,
    parents TEXT NOT NULL,
    metarange TEXT NOT NULL,
    created_at {int} NOT NULL,
    committer TEXT NOT NULL,
    message TEXT NOT NULL,
    metadata TEXT NOT NULL,
    generation {int} NOT NULL,
    added {int} NOT NULL DEFAULT 0,
    released_at {int},
    was TEXT,
    PRIMARY KEY (repository, id)
);
CREATE INDEX commits_inserted ON commits (repository, added);
CREATE TABLE collected (
    repository TEXT NOT NULL,
    id TEXT NOT NULL,
    parents TEXT NOT NULL,
    created_at {int} NOT NULL,
    generation {int} NOT NULL,
    run TEXT NOT NULL,
    collected_at {int} NOT NULL,
    PRIMARY KEY (repository, id)
);
CREATE TABLE branches (
    repository TEXT NOT NULL,
    name TEXT NOT NULL,
    uid TEXT NOT NULL UNIQUE,
    head TEXT NOT NULL,
    token TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (repository, name)
);
CREATE TABLE sealed (
    branch TEXT NOT NULL,
    position {int} NOT NULL,
    token TEXT NOT NULL,
    PRIMARY KEY (branch, position)
);
CREATE TABLE former_branches (
    repository TEXT NOT NULL,
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    deleted_at {int} NOT NULL
);
CREATE TABLE tags (
    repository TEXT NOT NULL,
    name TEXT NOT NULL,
    target TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (repository, name)
);
CREATE TABLE staging (
    token TEXT NOT NULL,
    path {blob} NOT NULL,
    value {blob},
    address TEXT,
    PRIMARY KEY (token, path),
    CHECK (value IS NULL OR address IS NOT NULL)
) {clustered};
CREATE INDEX staging_addresses ON staging (address);
CREATE TABLE dropped (
    repository TEXT NOT NULL,
    address TEXT NOT NULL,
    branch TEXT NOT NULL,
    path {blob} NOT NULL,
    dropped_at {int} NOT NULL,
    PRIMARY KEY (repository, address, branch, path)
) {clustered};
CREATE INDEX dropped_by_time ON dropped (repository, dropped_at);
CREATE TABLE fresh (
    repository TEXT NOT NULL,
    address TEXT NOT NULL,
    size_bytes {int} NOT NULL,
    PRIMARY KEY (address, repository)
) {clustered};
CREATE TABLE discarded (
    repository TEXT NOT NULL,
    address TEXT NOT NULL,
    path {blob} NOT NULL,
    branch TEXT NOT NULL,
    value {blob} NOT NULL,
    head TEXT NOT NULL,
    dropped_by TEXT NOT NULL,
    wait_until {int} NOT NULL,
    PRIMARY KEY (repository, address, path)
) {clustered};
CREATE INDEX discarded_by_time ON discarded (repository, wait_until);
CREATE TABLE tickets (
    repository TEXT NOT NULL,
    address TEXT NOT NULL,
    branch TEXT NOT NULL,
    path {blob} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (repository, address)
);
CREATE TABLE move_marks (
    repository TEXT NOT NULL,
    generation {int} NOT NULL,
    mark TEXT NOT NULL,
    PRIMARY KEY (repository, generation)
);
CREATE TABLE intents (
    repository TEXT NOT NULL,
    mark TEXT NOT NULL,
    made_at {int} NOT NULL,
    PRIMARY KEY (repository, mark)
);
CREATE TABLE partitions (
    branch TEXT NOT NULL,
    name TEXT NOT NULL,
    opened_at {int} NOT NULL,
    objects {int} NOT NULL,
    PRIMARY KEY (branch, name)
);
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
