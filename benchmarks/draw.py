"""Draw what was measured: `docs/performance.md` and its drawings, from `benchmarks/results/`.

    python benchmarks/draw.py [--check] [--results benchmarks/results] [--page docs/performance.md]

What stands between two marks of the page, `<!-- mark -->` and `<!-- /mark -->`, is written anew
from the results, and so are the drawings beside the page; what stands elsewhere is not touched.
A section whose result is not there yet is left out, and a line says so. With ``--check`` nothing is
written: whatever is not as it would be is named, and the answer is 1.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from drawing import aims, commands, days, icechunk, marking, servers, stores, whole_runs
from drawing.section import FOLDER, Results, Section, machines

ROOT = Path(__file__).parents[1]
SECTIONS: Mapping[str, tuple[Callable[[Results], Section], tuple[str, ...]]] = {
    "machines": (machines, ()),
    "aims": (aims.aims, ()),
    "limits": (whole_runs.limits, ()),
    "places": (whole_runs.places, ("places",)),
    "mark": (marking.mark, ("mark",)),
    "mark_growth": (marking.mark_growth, ("mark_growth",)),
    "bottom_line": (whole_runs.bottom_line, ("bottom_line",)),
    "bottom_line_files": (whole_runs.bottom_line_files, ("bottom_line_files",)),
    "lakefs": (servers.lakefs, ("lakefs",)),
    "icechunk": (icechunk.icechunk, ("icechunk",)),
    "thousand_days": (days.thousand_days, ("thousand_days",)),
    "cache_files": (days.cache_files, ("cache_files",)),
    "s3_rates": (stores.s3_rates, ("s3_rates",)),
    "sweep": (stores.sweep, ("sweep", "sweep_growth")),
    "commands": (commands.commands, ("commands",)),
}
"""What may stand between marks: who writes it, and which results it cannot be without."""


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "performance.md")
    options = parser.parse_args(words)
    results = {path.stem: json.loads(path.read_text()) for path in sorted(options.results.glob("*.json"))}
    files = made(options.page, results)
    there = {path: path.read_text() for path in [options.page, *(options.page.parent / FOLDER).glob("*.svg")]}
    changed = sorted(path for path in {*files, *there} if files.get(path) != there.get(path))
    for path in changed:
        print(f"{path.relative_to(options.page.parent)}: {'not as results say' if options.check else 'written'}")
        if options.check:
            continue
        if path in files:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path])
        else:
            path.unlink()
    if changed and options.check:
        print("run: python benchmarks/draw.py")
    return 1 if changed and options.check else 0


def made(page: Path, results: Results) -> dict[Path, str]:
    """The page and its drawings, as the results have them."""
    words, drawings = page.read_text(), dict[Path, str]()
    for name, (write, needs) in SECTIONS.items():
        missing = [one for one in needs if one not in results]
        if missing:
            print(f"{name}: left out, there is no {' and no '.join(f'{one}.json' for one in missing)}")
        try:
            part = Section("") if missing else write(results)
        except KeyError as error:
            raise SystemExit(
                f"{name}: no {error} in {' or '.join(f'{one}.json' for one in needs)}; measure it again"
            ) from error
        words = filled(words, name, part.text)
        drawings |= {page.parent / FOLDER / f"{drawn}.svg": svg for drawn, svg in part.drawings.items()}
    unknown = {*re.findall(r"<!-- (\w+) -->", words)} - {*SECTIONS}
    if unknown:
        raise SystemExit(f"{page}: nobody writes {', '.join(sorted(unknown))}")
    return {page: words, **drawings}


def filled(words: str, name: str, part: str) -> str:
    """The page with ``part`` between the marks of ``name``."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if words.count(begin) != 1 or words.count(end) != 1 or words.index(begin) > words.index(end):
        raise SystemExit(f"the page needs {begin} and after it {end}, once each")
    before, rest = words.split(begin)
    return f"{before}{begin}\n{part}{part and chr(10)}{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    sys.exit(main())
