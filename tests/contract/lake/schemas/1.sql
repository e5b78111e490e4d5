CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE repositories (
    name TEXT PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    default_branch TEXT NOT NULL,
    created_at {int} NOT NULL,
    generation {int} NOT NULL,
    secret TEXT NOT NULL,
    ticket_life {int} NOT NULL,
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
    PRIMARY KEY (token, path)
) {clustered};
CREATE TABLE tickets (
    repository TEXT NOT NULL,
    address TEXT NOT NULL,
    branch TEXT NOT NULL,
    path {blob} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (repository, address)
);
CREATE TABLE tombstones (
    repository TEXT NOT NULL,
    address TEXT NOT NULL,
    run TEXT NOT NULL,
    rule TEXT NOT NULL,
    condemned_at {int} NOT NULL,
    PRIMARY KEY (repository, address)
);
CREATE TABLE partitions (
    branch TEXT NOT NULL,
    name TEXT NOT NULL,
    opened_at {int} NOT NULL,
    objects {int} NOT NULL,
    PRIMARY KEY (branch, name)
);
