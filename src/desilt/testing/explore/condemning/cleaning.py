"""What comes after the rule, and beside it: the worker, restore, holds, the switch, and the collector."""

from desilt.testing.explore.acts import Act, Flow, Steps, erase, transaction
from desilt.testing.explore.condemning.conditions import Conditions
from desilt.testing.explore.condemning.rule import Staging
from desilt.testing.explore.condemning.tables import (
    CLAIMED,
    CONDEMNED,
    GONE,
    GRACE,
    LEASE,
    LIFE,
    OF_A_RUN,
    Stone,
    held,
    staged,
    tips,
)
from desilt.testing.explore.world import Declined, Visit


def work(when: Conditions) -> Flow:
    """One round of the worker: claim a tombstone, delete its object, settle."""

    def claim(visit: Visit) -> str:
        now = visit.now
        for address, stone in visit.scan("stone/"):
            ripe = stone.state == CONDEMNED and (stone.at + GRACE <= now or not when.grace_is_waited_for)
            again = stone.state == CLAIMED and stone.at <= now and when.claims_run_out
            if (ripe or again) and not (when.claims_look_for_holds and visit.get(f"hold/{address}")):
                visit.set(f"stone/{address}", stone._replace(state=CLAIMED, at=now + LEASE))
                return address
        raise Declined("nothing to do")

    def flow() -> Steps:
        address = yield transaction("claims a tombstone", claim, shows=True)
        yield erase(address)
        yield _settle(address)

    return flow


def restore(when: Conditions, address: str) -> Flow:
    """Lift a tombstone that nobody has claimed; its entry comes back where its path was not written since."""

    def do(visit: Visit) -> None:
        stone: Stone | None = visit.get(f"stone/{address}")
        if stone is None or stone.state in (OF_A_RUN, GONE):
            raise Declined("it is not condemned, or gone")
        if stone.state == CLAIMED and when.restore_spares_what_is_claimed:
            raise Declined("it is claimed")
        visit.delete(f"stone/{address}")
        for on in tips(visit).values():
            if on.uid == stone.uid and staged(visit, on.tokens, stone.path) == stone.below:
                staging = Staging(visit, when)
                staging.stage(on, stone.path, address)
                if when.restore_writes_a_row:
                    staging.write_row(address)
                staging.end()

    def flow() -> Steps:
        yield transaction(f"restores {address}", do)

    return flow


def hold(address: str) -> Flow:
    def do(visit: Visit) -> None:
        stone: Stone | None = visit.get(f"stone/{address}")
        if visit.object(address) is None or (stone is not None and stone.state != CONDEMNED):
            raise Declined("it is about to go")
        visit.set(f"hold/{address}", True)

    def flow() -> Steps:
        yield transaction(f"orders {address} to be held", do)

    return flow


def lift(address: str) -> Flow:
    def flow() -> Steps:
        yield transaction(f"lifts the hold on {address}", lambda visit: visit.delete(f"hold/{address}"))

    return flow


def switch(when: Conditions, *turns: bool) -> Flow:
    """Off takes all rows with it; on counts from what is staged after it."""

    def turn(on: bool) -> Act:
        def do(visit: Visit) -> None:
            visit.set("on", on)
            if not on and when.off_takes_all_rows:
                for address, _ in visit.scan("row/"):
                    visit.delete(f"row/{address}")

        return transaction(f"turns it {'on' if on else 'off'}", do)

    def flow() -> Steps:
        for on in turns:
            yield turn(on)

    return flow


def collect(when: Conditions) -> Flow:
    """The complement: all that is older than a ticket's life, that nothing holds and no tombstone names."""

    def free(visit: Visit) -> tuple[str, ...]:
        taken = held(visit.world()) | {address for address, _ in visit.scan("stone/")}
        visit.scan("")  # what it decides by is everything
        old = visit.now - (LIFE if when.collector_waits_for_tickets else 0)
        return tuple(address for address, blob in visit.objects() if address not in taken and blob.born <= old)

    def condemn(visit: Visit, addresses: tuple[str, ...]) -> tuple[str, ...]:
        for address in addresses:
            visit.set(f"stone/{address}", Stone(OF_A_RUN, visit.now))
            visit.delete(f"row/{address}")
        return tuple(address for address, stone in visit.scan("stone/") if stone.state == OF_A_RUN)

    def flow() -> Steps:
        if when.collector_decides_at_once:
            going = yield transaction(
                "condemns what nothing holds", lambda visit: condemn(visit, free(visit)), shows=True
            )
        else:
            seen = yield transaction("looks for what nothing holds", free, shows=True)
            going = yield transaction("condemns it", lambda visit: condemn(visit, seen), shows=True)
        for address in going:
            yield erase(address)
            yield _settle(address)

    return flow


def _settle(address: str) -> Act:
    def do(visit: Visit) -> None:
        stone: Stone | None = visit.get(f"stone/{address}")
        if stone is not None:
            visit.set(f"stone/{address}", Stone(GONE, 0))

    return transaction(f"settles {address}", do)
