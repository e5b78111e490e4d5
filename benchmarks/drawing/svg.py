"""SVG that stands on its own: no script, no font that is fetched, readable in light and in dark.

Colours have the names that they have in reports, and are those of a report's style. A drawing
has its own ground, so that it can be read on any page. Only the colours that are used are written down.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files

SPACE = "http://www.w3.org/2000/svg"
WIDTH = 760.0
FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",sans-serif'
LETTER = 0.56  # of a letter's height, its width on average
DARK = "@media screen and (prefers-color-scheme: dark)"
GENERAL = f"""text{{font:12px {FONT};font-variant-numeric:tabular-nums}}
.title{{font-size:15px;font-weight:650}}.strong{{font-weight:650}}
.end{{text-anchor:end}}.middle{{text-anchor:middle}}.open{{fill:none;stroke-width:2.25;stroke-linejoin:round}}
.hair{{stroke-width:1}}.dash{{stroke-dasharray:6 4}}.dots{{stroke-dasharray:2 3}}.band{{opacity:.16}}"""


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a drawing, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


def tag(name: str, *inside: str, **attributes: str | float) -> str:
    """An element; ``class_`` for what is a word of Python's, ``_`` for ``-``."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else _short(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{said}>{''.join(inside)}</{name}>" if inside else f"<{name}{said}/>"


def text(x: float, y: float, words: str, kind: str = "f-soft") -> str:
    """Words that begin at ``x``, unless their kind says otherwise."""
    return tag("text", escape(words, quote=False), x=x, y=y, class_=kind)


def line(start: tuple[float, float], end: tuple[float, float], kind: str = "hair s-line") -> str:
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=kind)


def rect(box: Box, kind: str, **more: str | float) -> str:
    return tag("rect", x=box.x, y=box.y, width=box.width, height=box.height, class_=kind, **more)


def wide(words: str, size: float = 12) -> float:
    """About how many pixels ``words`` take: no font is known here."""
    return len(words) * size * LETTER


def document(title: str, about: str, height: float, body: str) -> str:
    """A whole drawing, with what it says for those who do not see it."""
    ground = rect(Box(0.5, 0.5, WIDTH - 1, height - 1), "hair f-card s-line", rx=10)
    head = text(24, 32, title, "title f-ink") + text(24, 51, about)
    light, dark = _colours(ground + head + body)
    style = tag("style", f"{GENERAL}\n{light}\n{DARK}{{{dark}}}")
    said = tag("title", escape(title)) + tag("desc", escape(about))
    seen = f"0 0 {_short(WIDTH)} {_short(height)}"
    inside = (said, style, ground, head, body)
    whole = tag("svg", *inside, xmlns=SPACE, role="img", viewBox=seen, width=WIDTH, height=height)
    return whole.replace("><", ">\n<") + "\n"


def _short(value: float) -> str:
    return f"{round(value, 1):g}"


def _colours(body: str) -> tuple[str, str]:
    """Rules for what is filled (``f-…``) and drawn (``s-…``) in the colours of reports."""
    used = sorted(set(re.findall(r"\b([fs])-(\w+)", " ".join(re.findall(r'class="([^"]*)"', body)))))
    what = {"f": "fill", "s": "stroke"}
    light, dark = (
        "".join(f".{side}-{name}{{{what[side]}:{palette[name]}}}" for side, name in used) for palette in _palettes()
    )
    return light, dark


def _palettes() -> tuple[Mapping[str, str], Mapping[str, str]]:
    style = (files("desilt.render") / "templates" / "style.css").read_text()
    light, dark, *_ = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    return dict(_named(light)), dict(_named(dark))


def _named(rules: str) -> list[tuple[str, str]]:
    return re.findall(r"--([\w-]+): (#\w+)", rules)
