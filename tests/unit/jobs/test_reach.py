"""Who reaches what."""

from hypothesis import given
from hypothesis import strategies as st

from desilt.jobs.rules.reach import Reach, by_range

REACH = st.builds(
    Reach, st.integers(0, 3), st.lists(st.integers(0, 3), min_size=2, max_size=2), st.booleans(), st.booleans()
)


@given(st.lists(st.tuples(REACH, st.booleans(), st.sets(st.sampled_from("rstu")))))
def test_a_range_is_reached_by_all_that_reach_a_metarange_of_it(metaranges):
    reaches = {f"m{number}": reach for number, (reach, _, _) in enumerate(metaranges)}
    for reach, potential, _ in metaranges:
        reach.potential = potential
    of = {f"m{number}": sorted(names) for number, (_, _, names) in enumerate(metaranges)}
    found = by_range(of, reaches)
    expected: dict[str, Reach] = {}
    for metarange, names in of.items():
        for name in names:
            expected.setdefault(name, Reach(current=[0, 0])).add(reaches[metarange])
    assert found == expected
