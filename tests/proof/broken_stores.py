"""Stores that are broken as real ones have been: each breaks one promise, and looks as if it kept it.

They are mixed in before a store's class, and a harness must notice each.
"""

import msgspec

from rehydrate.model.checkpoint import CheckpointRef, Commit, Head, Stored, TurnRow


class Acknowledging:
    """Says that a commit is written before it is: it writes the last one with the next call of any kind."""

    _late: Commit | None = None

    async def commit(self, commit: Commit) -> None:
        await self._write()
        self._late = commit

    async def head(self, run_id: str) -> Head | None:
        await self._write()
        return await super().head(run_id)

    async def load(self, ref: CheckpointRef) -> Stored | None:
        await self._write()
        return await super().load(ref)

    async def _write(self) -> None:
        late, self._late = self._late, None
        if late is not None:
            await super().commit(late)


class Unkeyed:
    """Forgets the receipt of a turn that has ended well."""

    async def commit(self, commit: Commit) -> None:
        turn = commit.turn
        if turn is not None and commit.header.status != "RUNNING":
            turn = None
        await super().commit(msgspec.structs.replace(commit, turn=turn))


class Eventless:
    """Keeps no events of a commit that ends a turn."""

    async def commit(self, commit: Commit) -> None:
        ends = commit.header.status != "RUNNING"
        await super().commit(msgspec.structs.replace(commit, events=()) if ends else commit)


class Keyless:
    """Keeps a key with the end of its turn, and not with the claim."""

    async def commit(self, commit: Commit) -> None:
        await super().commit(msgspec.structs.replace(commit, turn=None) if commit.lease.claim else commit)


class Forgetful:
    """Finds no turn by its key."""

    async def find_turn(self, workflow: str, key: str) -> TurnRow | None:
        await super().find_turn(workflow, key)
        return None


BROKEN: dict[str, type] = {
    "acknowledges a commit before it writes it": Acknowledging,
    "keeps no events of the last commit": Eventless,
    "forgets the key of a turn that has ended": Unkeyed,
    "keeps a key with the end only": Keyless,
    "finds no key": Forgetful,
}
