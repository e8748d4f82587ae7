"""A run's folder: its head, the chain of its commits, and what is live at one of them.

Only reads, without a lock: commits are never changed, the head is replaced as a whole. A commit file that the chain
does not lead to belongs to a commit that never came.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from rehydrate.errors import CheckpointCorruptError
from rehydrate.model.checkpoint import Header

from .file_commit import CommitFile, advance, commit_file
from .file_disk import check_is_folder, names_in, read_whole
from .file_format import Contents, HeadLine, LivePiece, TagsLine, opened_line
from .file_names import commit_folder, commit_name, commit_number, escaped, is_commit_folder, is_commits

HEAD: Final = "head.json"
TAGS: Final = "tags.json"
INBOX: Final = "inbox"


class Link(NamedTuple):
    """What the first line of a commit says, apart from lengths."""

    header: Header
    token: str
    previous: int | None
    base: int


class RunFolder:
    """The folder of one run; `head` is what its head file held when this was made."""

    def __init__(self, folder: Path, head: HeadLine, store: str) -> None:
        self.folder = folder
        self.head = head
        self._store = store

    @contextmanager
    def commit(self, seq: int) -> Generator[CommitFile]:
        """Open a commit of the run. Raises `CheckpointCorruptError` where it is not there."""
        what = self.what(seq)
        try:
            with commit_file(self.path(seq), what) as commit:
                header = commit.header
                if header.run_id != self.head.run_id or header.seq != seq:
                    raise CheckpointCorruptError(what, "its header is another one's")
                previous = commit.line.previous
                if previous is not None and previous >= seq:  # whoever goes along the chain comes to its end
                    raise CheckpointCorruptError(what, "the one before it has no lower number")
                yield commit
        except FileNotFoundError:
            raise CheckpointCorruptError(what, "it is not there") from None

    def what(self, seq: int) -> str:
        """Return how a commit is called in errors."""
        return f"checkpoint number {seq} of run {self.head.run_id!r} in store {self._store}"

    def path(self, seq: int) -> Path:
        """Return the file of a commit."""
        return self.commits / commit_folder(seq) / commit_name(seq)

    @property
    def commits(self) -> Path:
        """Return the folder that its commits are in."""
        return self.folder / self.head.commits

    def link(self, seq: int) -> Link:
        """Return what the first line of a commit says."""
        with self.commit(seq) as commit:
            return Link(commit.header, commit.line.token, commit.line.previous, commit.line.base)

    def has(self, seq: int) -> bool:
        """Say whether the run has a checkpoint of this number."""
        if not 0 <= seq <= self.head.seq:
            return False
        return seq == self.head.seq or self.link(next(self.numbers(seq), self.head.seq)).previous == seq

    def is_in_chain(self, seq: int, token: str) -> bool:
        """Say whether a commit that was about to be written is one of the run."""
        if seq > self.head.seq:
            return False
        if self.path(seq).exists():
            return self.link(seq).token == token
        if self.has(seq):
            raise CheckpointCorruptError(self.what(seq), "it is not there")
        return False

    def back_from(self, seq: int) -> Iterator[Link]:
        """Give what the first lines of commits say along the chain, newest first."""
        at: int | None = seq
        while at is not None:
            link = self.link(at)
            yield link
            at = link.previous

    def live_at(self, seq: int) -> dict[str, LivePiece]:
        """Return where the records are that are live at a commit."""
        written: list[tuple[int, Contents]] = []
        base = self.link(seq).base
        at: int | None = seq
        while at is not None and at > base:
            with self.commit(at) as commit:
                written.append((at, commit.contents()))
                at = commit.line.previous
        if at != base:
            raise CheckpointCorruptError(self.what(seq), "the table of its records is not in its chain")
        with self.commit(base) as commit:
            live = commit.live()
            if base == seq:
                # Not needed here; but whoever loads a checkpoint is told of all damage in its file.
                commit.contents()
        for number, contents in reversed(written):
            advance(live, number, contents)
        return live

    def records(self, live: dict[str, LivePiece]) -> tuple[dict[str, bytes], dict[str, int]]:
        """Return records and their digests, in the order of their keys."""
        by_commit: dict[int, list[str]] = {}
        for key, piece in live.items():
            by_commit.setdefault(piece.seq, []).append(key)
        found: dict[str, tuple[bytes, int]] = {}
        for seq, keys in sorted(by_commit.items()):
            with self.commit(seq) as commit:
                for key in keys:
                    found[key] = commit.record(key, live[key])
        names = sorted(found)
        return {key: found[key][0] for key in names}, {key: found[key][1] for key in names}

    def tags(self) -> dict[str, str]:
        """Return the names of its checkpoints, with their ids, ordered by name."""
        data = read_whole(self.folder / TAGS)
        if data is None:
            return {}
        what = f"the names of checkpoints of run {self.head.run_id!r} in store {self._store}"
        line = opened_line(data, TagsLine, what)
        if line.run_id != self.head.run_id:
            raise CheckpointCorruptError(what, "they are another run's")
        return dict(sorted(line.tags.items()))

    def numbers(self, above: int) -> Iterator[int]:
        """Give the numbers of files of commits above one, in order, up to the head's; see the module."""
        for folder in self.folders:
            if int(folder) < int(commit_folder(max(above, 0))):
                continue
            for seq in self.numbers_in(folder):
                if above < seq <= self.head.seq:
                    yield seq

    @property
    def folders(self) -> list[str]:
        """Return the folders that commits are in, in the order of their numbers."""
        return sorted(filter(is_commit_folder, self._names_in(self.commits)), key=int)

    def numbers_in(self, folder: str) -> list[int]:
        """Return the numbers of the files of commits in one of these folders, in order."""
        numbers = map(commit_number, self._names_in(self.commits / folder))
        return sorted(number for number in numbers if number is not None)

    def _names_in(self, folder: Path) -> list[str]:
        """Return the names in a folder. One that is not there is damage, unless the run was deleted between two looks,
        which whoever is told of damage looks for."""
        try:
            return names_in(folder)
        except FileNotFoundError:
            what = f"run {self.head.run_id!r} in store {self._store}"
            raise CheckpointCorruptError(what, f"its folder {folder.name!r} is not there") from None


def run_folder(folder: Path, run_id: str, store: str) -> RunFolder | None:
    """Return the folder of a run as it is now; `None` where there is no such run."""
    run = read_run(folder, store)
    if run is not None and run.head.run_id != run_id:
        raise CheckpointCorruptError(f"run {run_id!r} in store {store}", "its head belongs to another run")
    return run


def read_run(folder: Path, store: str) -> RunFolder | None:
    """Return the run that lies in a folder as it is now; `None` where there is none."""
    if not check_is_folder(folder):
        if not check_is_folder(folder.parent):
            raise CheckpointCorruptError(f"store {store}", f"its folder {folder.parent.name!r} is not there")
        return None
    what = f"the head of the run in folder {folder.name!r} of store {store}"
    data = read_whole(folder / HEAD)
    if data is None:
        if not check_is_folder(folder):
            return None  # deleted between the two looks
        raise CheckpointCorruptError(what, f"it has no {HEAD}")
    head = opened_line(data, HeadLine, what)
    if not is_commits(head.commits):
        raise CheckpointCorruptError(what, "it names no folder of commits")
    if escaped(head.run_id) != folder.name:  # a copy under another name would be listed beside it
        raise CheckpointCorruptError(what, f"it belongs to run {head.run_id!r}")
    return RunFolder(folder, head, store)
