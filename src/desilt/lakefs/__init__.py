"""A lakeFS server's repositories, read: its answers, its dumps of refs, its addresses, its rules.

    settings    where the server is, and the keys, as lakectl finds them
    server      what is asked of it; calls has how
    dump        commits, branches and tags of one moment
    staged      what prepare_uncommited wrote
    namespace   addresses of every spelling, below the repository's own place
    layout      which of them are objects, and when they were named
    active      the commits that the server's own rules keep

Nothing here removes anything, or asks the server to.
"""
