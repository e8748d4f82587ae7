"""The step `dist`: a wheel and a source distribution in `dist/`, built twice, compared and looked into.

The second time everything is different that must not matter: the folder, umask, time zone, locale, hash seed, and the
times of the files; and the wheel comes from the checkout, while the first one came out of the source distribution.
"""

import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from release.contents import differing, of_sdist, of_wheel, wrong_in_sdist, wrong_in_wheel
from release.declared import ROOT, Declared
from release.environments import Environment, FailedError, attempt, run

DIST = ROOT / "dist"
_ELSEWHERE = {"TZ": "Pacific/Apia", "LC_ALL": "C", "PYTHONHASHSEED": "4711"}
#: 2031-05-06 07:08:10 UTC, in which all figures are different.
_ANOTHER_TIME = 1_935_731_290


def dist(project: Declared) -> str:
    """Build, compare, look, install; return what was done. Raises `FailedError`."""
    tracked = tracked_files()
    with tempfile.TemporaryDirectory(prefix="rehydrate-dist-") as folder:
        here = Path(folder)
        builder = Environment(here / "builder")
        builder.install("build", *project.build_needs)
        copy = _copied(tracked, here / "another folder")
        first = _build(builder, _copied(tracked, here / "checkout"), here / "first", [])
        second = _build(builder, copy, here / "second", ["--sdist", "--wheel"], _ELSEWHERE)
        _compare(first, second)
        _check_times(builder, copy, here / "third")
        wrong = wrong_in_wheel(of_wheel(first["whl"]), project, tracked)
        wrong += wrong_in_sdist(of_sdist(first["gz"]), project, tracked)
        if wrong:
            raise FailedError("\n".join(wrong))
        _check_checkout(project, copy, here)
        _check_sdist(first["gz"], here / "unpacked")
        DIST.mkdir(exist_ok=True)
        sizes = [f"{Path(shutil.copy(file, DIST)).name} ({file.stat().st_size:,} bytes)" for file in first.values()]
    return f"{' and '.join(sizes)}, byte for byte the same twice"


def wheel(project: Declared) -> Path:
    """Return the wheel in `dist/`. Raises `FailedError` where there is none of this version."""
    found = DIST / f"{project.name}-{project.version}-py3-none-any.whl"
    if not found.exists():
        raise FailedError(f"there is no {found.relative_to(ROOT)}; run: make dist")
    return found


def tracked_files() -> list[str]:
    """Return the files of the checkout that git knows. Raises `FailedError` outside of one."""
    listed = attempt(["git", "ls-files", "-z"], cwd=ROOT)
    if listed.returncode != 0:
        raise FailedError("this is no git checkout; out of an unpacked sdist, `python -m build` makes the same wheel")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def _copied(tracked: list[str], to: Path) -> Path:
    for name in tracked:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)
    return to


def _build(
    builder: Environment, source: Path, out: Path, kinds: list[str], more: Mapping[str, str] | None = None
) -> dict[str, Path]:
    if more:
        for file in source.rglob("*"):
            os.utime(file, (time.time() - 1e8,) * 2)
    mask = "0077" if more else "0022"
    command = [str(builder.python), "-m", "build", "--no-isolation", "--outdir", str(out), *kinds, str(source)]
    run(["sh", "-c", f'umask {mask}; exec "$@"', "sh", *command], more=more)
    return {file.suffix[1:]: file for file in sorted(out.iterdir())}


def _compare(first: Mapping[str, Path], second: Mapping[str, Path]) -> None:
    for kind, open_ in (("whl", of_wheel), ("gz", of_sdist)):
        if first[kind].read_bytes() != second[kind].read_bytes():
            files = differing(open_(first[kind]), open_(second[kind])) or ["the same files, packed in another way"]
            raise FailedError(f"two builds gave two different {first[kind].name}: {', '.join(files)}")


def _check_times(builder: Environment, source: Path, out: Path) -> None:
    """Whoever repacks may give the time that all files get."""
    built = _build(builder, source, out, ["--wheel"], {"SOURCE_DATE_EPOCH": str(_ANOTHER_TIME)})
    with zipfile.ZipFile(built["whl"]) as opened:
        times = {entry.date_time for entry in opened.infolist()}
    if times != {time.gmtime(_ANOTHER_TIME)[:6]}:
        raise FailedError(f"SOURCE_DATE_EPOCH={_ANOTHER_TIME} gave a wheel with the times {sorted(times)}")


def _check_checkout(project: Declared, copy: Path, here: Path) -> None:
    """`pip install .`, as the README says, gives the command."""
    plain = Environment(here / "plain")
    plain.install(str(copy))
    told = run([str(plain.scripts / project.name), "--version"], cwd=here)
    if project.version not in told:
        raise FailedError(f"`{project.name} --version` says {told!r} after `pip install .`")


def _check_sdist(sdist: Path, to: Path) -> None:
    """All tests can be collected from what is unpacked, without the checkout beside it."""
    shutil.unpack_archive(sdist, to, filter="data")
    (unpacked,) = to.iterdir()
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    source = {"PYTHONPATH": str(unpacked / "src")}
    run([*tests, "--collect-only", "-q"], cwd=unpacked, more=source)
    run([*tests, "tests/project"], cwd=unpacked, more=source)
