"""The step `audit`: known vulnerabilities of all that an installation with every extra brings.

`pip-audit` asks the services that know them. Where none of them answers for every package, the pages of the index say
what is known of newest releases. Where these do not, either, the step fails, as nothing was found out;
`ADVISORIES=FOLDER` names a clone of the Python advisory database to look into instead.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from release.building import wheel
from release.declared import Declared
from release.environments import Environment, FailedError, attempt
from release.pages import INDEX, looked_up

_SERVICES = ("pypi", "osv")


def audit(project: Declared) -> str:
    """Resolve, ask; return what was done. Raises `FailedError` where something was found, or nobody could be asked."""
    with tempfile.TemporaryDirectory(prefix="rehydrate-audit-") as folder:
        here = Path(folder)
        whole = Environment(here / "whole")
        whole.install(f"{wheel(project)}[{','.join(project.offered)}]")
        there = {name: version for name, version in whole.installed().items() if name != project.name}
        given = os.environ.get("ADVISORIES")
        if given:
            return _by_files(there, Path(given))
        return _by_services(there, here)


def _by_services(there: Mapping[str, str], here: Path) -> str:
    auditor = Environment(here / "auditor")
    auditor.install("pip-audit>=2.9")
    listed = here / "resolved.txt"
    listed.write_text("".join(f"{name}=={version}\n" for name, version in sorted(there.items())))
    tried: list[str] = []
    for service in _SERVICES:
        options = ["--requirement", str(listed), "--no-deps", "--disable-pip", "--format", "json"]
        done = attempt([str(auditor.scripts / "pip-audit"), "--vulnerability-service", service, *options])
        answer = answered(done.stdout)
        if answer is None:
            last = (done.stderr.strip().splitlines() or ["no words"])[-1]
            tried.append(f"{service}: {last}")
            continue
        found, skipped = answer
        if found:
            raise FailedError("known vulnerabilities:\n" + "\n".join(found))
        if not skipped:
            return f"{len(there)} packages, nothing known to {service}"
        tried.append(f"{service}: {len(skipped)} of {len(there)} packages were not looked up ({skipped[0]})")
    found, unknown = looked_up(there)
    if found:
        raise FailedError("known vulnerabilities:\n" + "\n".join(found))
    if not unknown:
        return f"{len(there)} packages, each the newest release; nothing known to the pages of {INDEX}"
    raise FailedError(
        "nothing was found out:\n"
        + "\n".join([*tried, *(f"{INDEX}: {line}" for line in unknown)])
        + "\nRun it where a service can be reached, or name a clone of the "
        "Python advisory database: make audit ADVISORIES=FOLDER"
    )


def answered(text: str) -> tuple[list[str], list[str]] | None:
    """Return what `pip-audit` found and what it did not look up, one line each; `None` where it said neither."""
    try:
        packages = json.loads(text)["dependencies"]
    except (ValueError, KeyError):
        return None
    found = [
        f"{package['name']} {package['version']}: {known['id']}, fixed in {', '.join(known['fix_versions']) or 'none'}"
        for package in packages
        for known in package.get("vulns", [])
    ]
    return found, [package["skip_reason"] for package in packages if "skip_reason" in package]


def _by_files(there: Mapping[str, str], folder: Path) -> str:
    # Needs a reader of YAML, which an audit by services does without.
    from release.advisories import Advisories  # noqa: PLC0415

    try:
        advisories = Advisories.read(folder)
    except ValueError as error:
        raise FailedError(str(error)) from None
    found = [
        f"{name} {version}: {known}"
        for name, version in sorted(there.items())
        for known in advisories.of(name, version)
    ]
    if found:
        raise FailedError("known vulnerabilities:\n" + "\n".join(found))
    return f"{len(there)} packages, nothing in the advisories in {folder.name} up to {advisories.youngest}"
