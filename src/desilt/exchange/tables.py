"""Ranges and metaranges with the addresses of their new place: one for one, so that commits share what they shared."""

from desilt.exchange.entries import inside, readdressed
from desilt.exchange.names import Named
from desilt.exchange.side import Partner
from desilt.exchange.survey import Surveyed
from desilt.executors.executor import Watch
from desilt.sstable.values import RangeData
from desilt.sstable.writer import write_table


def rewrite(origin: Partner, target: Partner, found: Surveyed, named: Named, *, watch: Watch) -> dict[str, str]:
    """All tables, stored in their new place: the old metarange of each, and the new one."""
    watch.begins("writing tables")
    watch.expects(found.entries)
    ranges = {}
    for listed in found.ranges.values():
        ranges[listed.id] = _range(origin, target, listed, named)
        watch.advance(listed.count)
    made = {"": ""}
    for name in found.metaranges:
        made[name] = target.ranges.put_metarange([ranges[one.id] for one in origin.ranges.metarange(name)])
    return made


def _range(origin: Partner, target: Partner, listed: RangeData, named: Named) -> RangeData:
    records = origin.ranges.read(listed)
    addresses, _ = inside(records, origin.place, listed.id)
    if addresses.null_count == len(addresses):  # it points nowhere inside
        target.put_table(listed.id, origin.table(listed.id))
        return listed
    wanted = [None if address is None else named(address) for address in addresses.to_pylist()]
    return target.ranges.put(write_table(readdressed(records, wanted, listed.id), kind="ranges"))
