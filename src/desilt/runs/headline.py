"""What a page says first: what a plan comes to, or what came of it; and what is stored before and after.

The figures of a sweep are checked as they are told: where they do not add up, the page says so.
"""

from collections.abc import Iterator, Mapping

from desilt.runs.markup import bar, count, exact, section, share, stack, table, text, told
from desilt.runs.report import Amount, Report, Swept

TRASH = "trash"
ENDED = ("swept", "swept in part")  # states in which every planned object has its outcome
OUTCOMES = "the Parquet files in <code>outcome/</code>, beside this page"
STAYING = {"pointed at": "refs or holds point to", "kept by rules": "rules keep"}  # in a report's history
RESTORE = "<code>desilt restore</code> can bring"


def headline(report: Report) -> Iterator[str]:
    """The first sections of the page."""
    if only_history(report):
        yield edits(report)
    elif report.swept is None:
        yield nothing(report) or proposal(report)
        yield from tiles(report)
    else:
        yield outcome(report, report.swept)
        yield balance(report.removed.objects, report.swept)
        yield before_and_after(stored(report), report.swept)
    if not only_history(report) and (done := deeds(report.history, planned=report.swept is None)):
        yield section("", "History", f"<p>{done}.</p>")


def only_history(report: Report) -> bool:
    """Whether commits and refs are all that the run is about."""
    asked = report.swept.asked if report.swept else 0
    return "edited" in report.history and not report.removed.objects and not asked


def edits(report: Report) -> str:
    """What is done to history, where no object goes."""
    swept, done = report.swept, deeds(report.history, planned=report.swept is None)
    heading = f"{done or 'History stays as it is'}; no object is removed"
    says = [f"<p>{also}</p>"] if (also := old_ones(report.history)) else []
    if swept is None:
        says.append("<p>Commits keep their ids, and can be read by them. So far, nothing was changed.</p>")
    elif swept.state not in ENDED:
        says.insert(0, f'<p class="warning"><strong>Not finished:</strong> the state is “{text(swept.state)}”.</p>')
    else:
        says.append("<p>Commits keep their ids, and can be read by them until they are collected.</p>")
    kind = "would" if swept is None and done else "failed" if swept and swept.state not in ENDED else "done"
    return section(f"banner {kind}", heading, "".join(says))


def deeds(history: Mapping[str, int], *, planned: bool) -> str:
    """Such as “4 commits edited, 2 abandoned, 1 ref deleted”."""
    found = []
    for name, number in history.items():
        noun, _, verb = name.partition(" ")
        if not number or name in STAYING:
            continue
        if verb:  # "refs deleted"
            one = {"branches": "branch"}.get(noun, noun.removesuffix("s"))
            found.append((f"{number:,} {one if number == 1 else noun}", verb))
        else:
            first = not any(words.endswith(("commit", "commits")) for words, _ in found)
            found.append((f"{number:,} {'commit' if number == 1 else 'commits'}" if first else f"{number:,}", name))
    would = [" would be" if planned and not place else "" for place in range(len(found))]
    return ", ".join(f"{text(words)}{may} {text(verb)}" for (words, verb), may in zip(found, would, strict=True))


def old_ones(history: Mapping[str, int]) -> str:
    """The old commits that stay for their own sake; what they descend from is told with the picture."""
    found = [f"{history[name]:,} that {words}" for name, words in STAYING.items() if history.get(name)]
    return f"Old commits that stay for their own sake: {', '.join(found)}." if found else ""


def stored(report: Report) -> Amount:
    """All there is where the run looked: at least what it looked at."""
    seen = report.removed + report.kept
    return Amount(max(report.stored.objects, seen.objects), max(report.stored.bytes, seen.bytes))


def unseen(report: Report) -> Amount:
    """What an earlier run found held by commits, and this one only counted."""
    return less(stored(report), report.removed + report.kept)


def less(whole: Amount, part: Amount) -> Amount:
    return Amount(max(whole.objects - part.objects, 0), max(whole.bytes - part.bytes, 0))


def nothing(report: Report) -> str:
    """That nothing goes, if so."""
    whole = stored(report)
    if report.removed.objects:
        return ""
    if not whole.objects:
        return section("banner", "Nothing was looked at", "<p>The inventory held no objects, so none go.</p>")
    return section("banner", "Nothing to remove", f"<p>All that is stored is kept: {told(whole)}.</p>")


def proposal(report: Report) -> str:
    goes, whole = report.removed, stored(report)
    trash = report.action == TRASH
    what = "would be moved to the trash" if trash else "would be deleted"
    them = "it" if goes.objects == 1 else "them"
    then = f"From the trash, {RESTORE} {them} back." if trash else f"Once deleted, nothing brings {them} back."
    of_all = f"{share(goes.bytes, whole.bytes)} of the bytes and {share(goes.objects, whole.objects)} of the objects"
    body = f"<p>That is {of_all} stored where the run looked. {then} So far, nothing was removed.</p>"
    return section("banner would", f"{told(goes)} {what}", body)


def tiles(report: Report) -> Iterator[str]:
    goes, whole = report.removed, stored(report)
    if not whole.objects:
        return
    for kind, heading, amount in (("goes", "Would go", goes), ("stays", "Stays", less(whole, goes))):
        figure = f'<p class="figure">{exact(amount.bytes)}</p><p>{count(amount.objects)}</p>'
        yield section(f"tile {kind}", heading, figure)
    body = "".join(
        f'<p class="part"><b>{share(part, all_of_it)}</b> of {name}</p>{bar(part, all_of_it, "goes")}'
        for name, part, all_of_it in (("bytes", goes.bytes, whole.bytes), ("objects", goes.objects, whole.objects))
    )
    yield section("tile", "Share of what is stored", body)


def outcome(report: Report, swept: Swept) -> str:
    """What came of the plan, in sentences."""
    if not report.removed.objects and not swept.asked:
        return nothing(report)
    done = "moved to the trash" if swept.action == TRASH else "removed"
    rest = report.removed.objects - swept.asked - swept.held_again
    says = []
    if swept.failed:
        says.append(
            f'<p class="warning"><strong>Swept in part: {count(swept.failed)} failed</strong> and '
            f"{be(swept.failed, 'is', 'are')} still there. Nothing needs to be done by hand: "
            f"{be(swept.failed, 'it is', 'they are')} tried again by the next run. Why it failed is in {OUTCOMES}.</p>"
        )
    if swept.state not in ENDED or rest:
        left = f"{count(max(rest, 0))} of the plan {be(rest, 'has', 'have')} no outcome yet"
        state = f"the state is “{text(swept.state)}”"
        says.append(f'<p class="warning"><strong>Not finished:</strong> {left}; {state}.</p>')
    if swept.action == TRASH and swept.removed:
        them, they = be(swept.removed, "it", "them"), be(swept.removed, "it takes", "they take")
        says.append(f"<p>{RESTORE} {them} back. Until the trash is emptied, {they} as much space as before.</p>")
    if swept.gone:
        says.append(
            f"<p><strong>{count(swept.gone)} already gone</strong> when the sweep came to "
            f"{be(swept.gone, 'it', 'them')}: removed by others, or by this run before it was cut off.</p>"
        )
    if swept.held_again:
        says.append(
            f"<p><strong>{count(swept.held_again)} held again</strong>, and so kept: "
            f"something holds {be(swept.held_again, 'it', 'them')} by now.</p>"
        )
    kind = "failed" if swept.failed or swept.state not in ENDED or rest else "done"
    heading = f"{told(Amount(swept.removed, swept.bytes))} {done}"
    return section(f"banner {kind}", heading, "".join(says) or "<p>Everything that was planned to go.</p>")


def balance(planned: int, swept: Swept) -> str:
    """The planned objects, each counted once."""
    if not planned and not swept.asked:
        return ""
    moved = "moved to the trash" if swept.action == TRASH else "removed"
    results = (swept.removed, "stays", moved), (swept.gone, "gone", "already gone"), (swept.failed, "bad", "failed")
    asked = (swept.asked, "", "asked for"), (swept.held_again, "held", "held again")
    body = f'<p class="sum">{figure(planned, "", "planned")} = {" + ".join(figure(*one) for one in asked)}</p>'
    body += f'<p class="sum">{figure(*asked[0])} = {" + ".join(figure(*one) for one in results)}</p>'
    parts = [(objects, kind) for objects, kind, _ in (*results, asked[1])]
    body += stack(parts, max(planned, sum(objects for objects, _ in parts)))
    for whole, some in ((planned, asked), (swept.asked, results)):
        total = sum(objects for objects, _, _ in some)
        if total != whole:
            body += f'<p class="warning">The figures do not add up: {total:,} is not {whole:,}.</p>'
    return section("balance", "What became of what was planned", body)


def figure(objects: int, kind: str, words: str) -> str:
    return f'<span class="{kind if objects else ""}"><b>{objects:,}</b> {words}</span>'


def before_and_after(before: Amount, swept: Swept) -> str:
    """Objects and bytes where the run looked; what others wrote meanwhile is not in them."""
    if not before.objects:
        return ""
    moved = Amount(swept.removed, swept.bytes)
    lines = [("Before", "held", before), ("After", "stays", less(before, moved + Amount(swept.gone)))]
    lines += [("In the trash", "goes", moved)] if swept.action == TRASH else []
    objects = [level(when, kind, n.objects, before.objects, f"{n.objects:,}") for when, kind, n in lines]
    sizes = [level(when, kind, n.bytes, before.bytes, exact(n.bytes)) for when, kind, n in lines]
    note = "Counted from what the plan found; what others wrote since is not in it."
    if swept.gone:  # how big those were is not known
        note += " After the sweep there are at most so many bytes: what was already gone counts as objects only."
    body = table("Objects stored, before and after", ("When", "Objects#", "Of before#"), objects, kind="bars")
    body += table("Bytes stored, before and after", ("When", "Bytes#", "Of before#"), sizes, kind="bars")
    return section("", "Stored before and after", f'<div class="pair">{body}</div><p class="note">{note}</p>')


def level(when: str, kind: str, part: int, whole: int, words: str) -> str:
    drawn = f'<th scope="row">{when}{bar(part, whole, kind)}</th>'
    return f'{drawn}<td class="n">{words}</td><td class="n">{share(part, whole)}</td>'


def be(objects: int, one: str, more: str) -> str:
    return one if objects == 1 else more
