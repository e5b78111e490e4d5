"""Repositories of a lakeFS server, as the engine's second kind.

    settings      where the server is, and the keys, as lakectl finds them
    server        what is asked of it (branches: of one branch; asker and calls have how)
    dump          commits, branches and tags of one moment, read; dumping writes such tables
    pages         a page of a listing, by column
    staged        what prepare_uncommited wrote; unlisted has what that leaves out, inquiry asks branches for it
    sightings     since when listings have had what was uploaded in parts
    namespace     addresses of every spelling, below the repository's own place; site opens it
    layout        which of them are objects, and when they were named
    tables        ranges and metaranges, where only the server may read them
    active        the commits that the server's own rules keep; server_rules is that as a policy
    history       refs of now, counted in our records
    source, held, gate, editor, orders, witness, fsck     the seam
    giving, adoption     a repository made there, and records handed over

Objects are removed by sweeps alone; a branch is deleted here, by the server, when a sweep says so.
"""
