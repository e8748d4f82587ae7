"""URLs of stores: taken apart into a scheme, a path and options, checked, and never shown with a password.

It knows no store; which schemes there are, and what each takes, it is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from rehydrate.errors import WrongCallError

#: What options may be set to, and what it means.
_TRUTHS: Final[Mapping[str, bool]] = {"true": True, "1": True, "false": False, "0": False}


class StoreUrl(NamedTuple):
    """A URL of a store: its scheme, the path of a file or folder, the options of the store, and the whole without them."""

    scheme: str
    path: str
    options: dict[str, bool]
    whole: str


def parsed_url(url: object, forms: Mapping[str, str], options: tuple[str, ...], foreign: frozenset[str]) -> StoreUrl:
    """Return a URL taken apart. Raises `WrongCallError`.

    `forms` has an example for each scheme, `options` are those that every store takes; the schemes in `foreign` take
    others too, and a host, which are left in `whole` for what opens them.
    """
    if not isinstance(url, str):
        raise WrongCallError(f"the URL of a store is a {type(url).__name__}.", f"Pass a str: {_all(forms)}.")
    parts = _split(url, forms)
    if parts.scheme not in forms:
        raise WrongCallError(f"{shown_url(url)!r} is no URL of a store that is known here.", f"Use {_all(forms)}.")
    if parts.fragment or "#" in url:
        raise WrongCallError(f"{shown_url(url)!r} has a '#'.", "In a path write %23.")
    given, others = _options(url, parts, options)
    if parts.scheme in foreign:
        return StoreUrl(parts.scheme, parts.path, given, parts._replace(query=urlencode(others)).geturl())
    if others:
        known = " or ".join(repr(f"{name}=true") for name in options)
        raise WrongCallError(f"{shown_url(url)!r} has the option {others[0][0]!r}.", f"A store takes {known}.")
    if parts.netloc:
        example = forms[parts.scheme]
        raise WrongCallError(f"{shown_url(url)!r} names a host, and its store has none.", f"Use {example}.")
    return StoreUrl(parts.scheme, unquote(parts.path), given, url)


def shown_url(url: str) -> str:
    """Return a URL without what may be secret in it, for an error: user, password, and values of options."""
    scheme, found, rest = url.partition("://")
    if not found:
        return scheme.partition("?")[0]
    rest, asked, query = rest.partition("?")
    host, slash, path = rest.partition("/")
    if "@" in rest:
        # A password may hold a slash that should have been escaped.
        host, slash, path = ("***@" + rest.rpartition("@")[2]).partition("/")
    names = "&".join(f"{part.partition('=')[0]}=..." for part in query.split("&")) if asked else ""
    return f"{scheme}://{host}{slash}{path}{asked}{names}"


def _split(url: str, forms: Mapping[str, str]) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise WrongCallError(f"{shown_url(url)!r} is no URL ({error}).", f"Use {_all(forms)}.") from None


def _options(url: str, parts: SplitResult, known: tuple[str, ...]) -> tuple[dict[str, bool], list[tuple[str, str]]]:
    given: dict[str, bool] = {}
    others: list[tuple[str, str]] = []
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in known:
            others.append((name, value))
            continue
        if name in given or value not in _TRUTHS:
            raise WrongCallError(f"{shown_url(url)!r} does not say once what {name!r} is.", f"Write {name}=true.")
        given[name] = _TRUTHS[value]
    return given, others


def _all(forms: Mapping[str, str]) -> str:
    *most, last = forms.values()
    return f"{', '.join(most)} or {last}"
