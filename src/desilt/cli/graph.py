"""The commit graph, drawn in text: one commit a line, newest first, a lane for each line of descent."""

from collections.abc import Iterator, Mapping, Sequence

from desilt.cli.output import shown, when
from desilt.domain.history import Commit

Lanes = list[str | None]  # the commit each lane leads down to; None: free


def draw(commits: Sequence[Commit], names: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """``commits`` with children before parents, labelled with the ``names`` of the refs on them."""
    lanes: Lanes = []
    for commit in commits:
        if commit.id not in lanes:
            _occupy(lanes, commit.id, right_of=-1)
        own = lanes.index(commit.id)
        for other in range(len(lanes) - 1, own, -1):
            if lanes[other] == commit.id:
                yield _bridge(lanes, own, other, "╯")
                lanes[other] = None
        yield f"{_row(lanes, own)}  {_label(commit, names.get(commit.id, ()))}"
        lanes[own] = commit.parents[0] if commit.parents else None
        for parent in commit.parents[1:]:
            new = parent not in lanes
            other = _occupy(lanes, parent, right_of=own) if new else lanes.index(parent)
            yield _bridge(lanes, own, other, "╮" if new else "┤")
        while lanes and lanes[-1] is None:
            lanes.pop()


def _occupy(lanes: Lanes, commit: str, *, right_of: int) -> int:
    for lane in range(right_of + 1, len(lanes)):
        if lanes[lane] is None:
            lanes[lane] = commit
            return lane
    lanes.append(commit)
    return len(lanes) - 1


def _row(lanes: Lanes, own: int) -> str:
    return " ".join("●" if lane == own else "│" if to else " " for lane, to in enumerate(lanes)).rstrip()


def _bridge(lanes: Lanes, own: int, other: int, end: str) -> str:
    first, last = sorted((own, other))
    cells = []
    for lane, to in enumerate(lanes):
        if lane in (first, last):
            cell = "├" if lane == first else end if lane == other else "┤"
        elif first < lane < last:
            cell = "┼" if to else "─"
        else:
            cell = "│" if to else " "
        cells.append(cell + ("─" if first <= lane < last else " "))
    return "".join(cells).rstrip()


def _label(commit: Commit, names: Sequence[str]) -> str:
    refs = f"({', '.join(names)}) " if names else ""
    return f"{commit.id[:12]}  {refs}{shown(commit.message)}  · {when(commit.created_at)}"
