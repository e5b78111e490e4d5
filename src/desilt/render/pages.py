"""Where templates come from, and what becomes of words on their way into one.

Every word that a template prints is made visible and escaped, wherever it came from: a template has to do nothing for
it, and can forget nothing. Only styles and scripts that lie beside the templates are printed as they are, and the
page's security policy allows those, by their hashes, and no others.
"""

from base64 import b64encode
from hashlib import sha256

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from desilt.domain.units import size
from desilt.render.bars import bars
from desilt.render.words import clock, count, number, seconds, seen, share, text, told, utc

LOADER = PackageLoader("desilt.render")  # its folder ``templates``, in a checkout and in a wheel alike


def page(template: str, **facts: object) -> str:
    """The text of a template, filled in."""
    return ENVIRONMENT.get_template(template).render(facts)


def part(template: str, **facts: object) -> Markup:
    """The same, for another template to print as it is."""
    return Markup(page(template, **facts).strip())


def visible(value: object) -> object:
    """What is printed in place of ``value``: the same, unless it is plain words."""
    return seen(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def source(name: str) -> Markup:
    """A style or a script beside the templates, as it is."""
    return Markup(LOADER.get_source(ENVIRONMENT, name)[0])


def fingerprint(inside: str) -> str:
    """By what a security policy knows a style or a script."""
    return "sha256-" + b64encode(sha256(inside.encode()).digest()).decode()


ENVIRONMENT = Environment(
    loader=LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    finalize=visible,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
ENVIRONMENT.filters |= {
    one.__name__: one for one in (clock, count, fingerprint, number, seconds, size, text, told, utc)
}
ENVIRONMENT.globals |= {one.__name__: one for one in (bars, share, source)}
