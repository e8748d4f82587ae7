"""URLs of stores: taken apart into a scheme, a path and options, checked, and never shown with a password.

It knows no store; which schemes there are, and what each takes, it is told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from rehydrate.errors import WrongCallError

#: What is no URL, as its scheme was mistyped, and may hold a password all the same; and a connection string of libpq.
_SECRET: Final = re.compile(r":.*@|:.*\?|password\s*=", re.DOTALL | re.IGNORECASE)
_HIDDEN: Final = "***"


class Form(NamedTuple):
    """A form of URL: an example for errors, and the values that each of its options may have.

    Where it is `foreign`, a host and other options are left in the URL for what opens it.
    """

    example: str
    options: Mapping[str, Sequence[str]]
    foreign: bool = False


class StoreUrl(NamedTuple):
    """A URL of a store taken apart; `whole` is it without the options of the store."""

    scheme: str
    path: str
    options: dict[str, str]
    whole: str


def parsed_url(url: object, forms: Mapping[str, Form]) -> StoreUrl:
    """Return a URL taken apart, given the form of each scheme. Raises `WrongCallError`."""
    if not isinstance(url, str):
        raise WrongCallError(f"the URL of a store is a {type(url).__name__}.", f"Pass a str: {_all(forms)}.")
    parts = _split(url, forms)
    form = forms.get(parts.scheme)
    if form is None:
        raise WrongCallError(f"{shown_url(url)!r} is no URL of a store that is known here.", f"Use {_all(forms)}.")
    if "#" in url:
        raise WrongCallError(f"{shown_url(url)!r} has a '#'.", "In a path write %23.")
    given, others = _options(url, parts, form)
    if form.foreign:
        # By hand: `geturl` leaves out the slashes before an empty host, and what is libpq's stays as it was written.
        place = parts.scheme + url.partition("?")[0][len(parts.scheme) :]
        query = "&".join(part for _, part in others)
        return StoreUrl(parts.scheme, parts.path, given, f"{place}?{query}" if query else place)
    if others:
        known = " or ".join(f"{name}={values[0]}" for name, values in form.options.items())
        shown, name = shown_url(url), others[0][0]
        option = f"the option {name!r}" if f"{name}=" in shown else "another option"  # it may be a piece of a password
        raise WrongCallError(f"{shown!r} has {option}.", f"Such a store takes {known}.")
    if parts.netloc:
        raise WrongCallError(f"{shown_url(url)!r} names a host, and its store has none.", f"Use {form.example}.")
    return StoreUrl(parts.scheme, unquote(parts.path), given, url)


def shown_url(url: str) -> str:
    """Return a URL without what may be secret in it, for an error: user, password, and values of options."""
    scheme, found, rest = url.partition("://")
    if not found or not scheme.replace("+", "").isalnum():  # else a part of a password may stand before the slashes
        return _shown_path(url)
    place, asked, query = rest.partition("?")
    # A password may hold what should have been escaped: a slash or an `@`, a question mark, an ampersand.
    if "@" in query:
        place = _HIDDEN
    elif "@" in place:
        place = f"{_HIDDEN}@{place.rpartition('@')[2]}"
    names = "&".join(f"{part.partition('=')[0]}=..." for part in query.split("&")) if asked else ""
    return f"{scheme}://{place}{asked}{'...' if 'password' in query or '@' in query else names}"


def _shown_path(path: str) -> str:
    """Return a path as it is, unless it looks like a URL or a connection string."""
    if not _SECRET.search(path):
        return path
    scheme, colon, _ = path.partition(":")
    return f"{scheme}:{_HIDDEN}" if colon and "=" not in scheme else _HIDDEN


def may_be_secret(name: str, options: Collection[str]) -> bool:
    """Tell whether a path or URL may hold a password: all but a URL without a user that has no other options."""
    _, _, query = name.partition("?")
    if "://" not in name and not name.startswith(("file:", "memory:")):
        return _SECRET.search(name) is not None
    return "@" in name or any(part.partition("=")[0] not in options for part in query.split("&") if part)


def _split(url: str, forms: Mapping[str, Form]) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        # What is wrong with it would be told with the host, and maybe with the password.
        raise WrongCallError("this is no URL of a store.", f"Use {_all(forms)}.") from None


def _options(url: str, parts: SplitResult, form: Form) -> tuple[dict[str, str], list[tuple[str, str]]]:
    given: dict[str, str] = {}
    others: list[tuple[str, str]] = []
    for part in filter(None, parts.query.split("&")):
        name, _, value = map(unquote, part.partition("="))
        values = form.options.get(name)
        if values is None:
            others.append((name, part))
            continue
        if name in given or value not in values:
            one = " or ".join(f"{name}={value}" for value in values)
            raise WrongCallError(f"{shown_url(url)!r} does not say what {name!r} is.", f"Write {one}, once.")
        given[name] = value
    return given, others


def _all(forms: Mapping[str, Form]) -> str:
    *most, last = (form.example for form in forms.values())
    return f"{', '.join(most)} or {last}"
