import pytest


@pytest.fixture(params=[1, 2], ids=["format 1", "format 2"])
def world(request, place):
    """A new repository of each format that the library writes, if it is there."""
    from icechunk_world import FORMATS, WHERE_BOTH, World

    if request.param not in FORMATS:
        pytest.skip(WHERE_BOTH)
    return World(place, request.param)
