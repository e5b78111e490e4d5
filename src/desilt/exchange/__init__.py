"""A repository copied whole, from a lake of our own to a lakeFS server and back.

    places      two owners of one location are refused
    names       where an object of one side lies on the other
    entries     an entry's address, and nothing else of it, written anew
    survey      what all commits point to: inside, and elsewhere
    objects     bytes, copied once each
    tables      ranges and metaranges, with the addresses of their new place
    commits     ids and generations as the new side has them
    exporting   a lake's repository, given to a server
    importing   a server's repository, taken into a lake

Nothing here removes anything, on either side.
"""
