"""Forged records: real ones, changed so that they stay well-formed. Seeded; knows the form of MessagePack and the
classes of records, and nothing of what records mean. Checksums and digests of what it makes are right."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from rehydrate.codecs.checkpoints import digest_sum, record_digest
from rehydrate.codecs.envelope import unwrap, wrap
from rehydrate.model.checkpoint import Head, Header, Stored, key_of, key_text
from rehydrate.model.records import RECORD_TYPES
from tests.proof.inventing import invented

#: What `msgspec.msgpack` decodes to without a type.
Tree: TypeAlias = object
Ext: Final = msgspec.msgpack.Ext
encode: Final = msgspec.msgpack.encode
decode: Final = msgspec.msgpack.decode

INTS: Final = [0, 1, 2, 3, -1, -2, 5, 127, 128, 255, 1 << 15, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
               -(1 << 31), -(1 << 63)]  # fmt: skip
FLOATS: Final = [0.0, -0.0, 1.0, -1.0, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan")]
TEXTS: Final = ["", "0", "1", "-1", "x", "#", "/", "?", "a#1", "a#1?1", "1:1", ":", "1:", "1:1.1", "\x1f",
                "a\x1f1", "\0",
                "9" * 30, "9" * 5000, "a#" + "9" * 300, "\u0661", "#1", "1#", "//", "..", "a/b", "/a#1",
                "answered", "message", "answer", "pass",
                "list", "request", "\n", " 1", "+1", "1_0", "\u00b2"]  # fmt: skip
BYTES: Final = [b"", b"\0", b"\xff", b"\x90", b"\x80", b"\xc0", b"\x01", b"\xa1a", b"\xdd\xff\xff\xff\xff", b"\xc1"]
KINDS: Final = sorted(RECORD_TYPES)


class Forger:
    """Changes real things at random; the same seed makes the same."""

    def __init__(self, seed: int | str, texts: Sequence[str] = (), others: Sequence[Tree] = ()) -> None:
        self.chance = random.Random(seed)
        #: Texts of the run, so that what is forged often names something that is there.
        self.texts = [*texts] or [*TEXTS]
        #: Whole bodies that parts are taken from.
        self.others = [*others]

    def tree(self, tree: Tree, times: int | None = None) -> Tree:
        """Return a tree that is changed in a few places."""
        for _ in range(times or self.chance.choice((1, 1, 1, 2, 3))):
            tree = self._changed(tree, 0)
        return tree

    def _changed(self, tree: Tree, depth: int) -> Tree:
        """Change something in a tree: the deeper, the more likely here."""
        chance = self.chance
        if isinstance(tree, (list, tuple)) and tree and depth < 12 and chance.random() < 0.85:
            items = [*tree]
            place = chance.randrange(len(items))
            items[place] = self._changed(items[place], depth + 1)
            return items
        if isinstance(tree, dict) and tree and depth < 12 and chance.random() < 0.8:
            key = chance.choice([*tree])
            if chance.random() < 0.2:
                return {(self.text() if k == key else k): v for k, v in tree.items()}
            return {**tree, key: self._changed(tree[key], depth + 1)}
        if isinstance(tree, Ext) and chance.random() < 0.8:
            return Ext(tree.code, self.bytes(bytes(tree.data)))
        return self._replaced(tree)

    def _replaced(self, tree: Tree) -> Tree:
        chance = self.chance
        if chance.random() < 0.12:
            return self.anything(3)
        if chance.random() < 0.12 and self.others:
            return self._piece(chance.choice(self.others))
        match tree:
            case bool():
                return not tree
            case int():
                return chance.choice([tree + 1, tree - 1, chance.choice(INTS), chance.randrange(8)]) % (1 << 64)
            case float():
                return chance.choice([chance.choice(FLOATS), tree + 1, -tree])
            case str():
                return self.text(tree)
            case bytes():
                return self.bytes(tree)
            case list() | tuple():
                return self._list([*tree])
            case dict():
                return self._dict(dict(tree))
            case None:
                return self.anything(2)
            case _:
                return Ext(chance.randrange(-128, 128), bytes(getattr(tree, "data", b"")))

    def _list(self, items: list[Tree]) -> list[Tree]:
        chance = self.chance
        act = chance.randrange(7)
        place = chance.randrange(len(items) + 1)
        if act == 0 or not items:
            items.insert(place, self.anything(2) if chance.random() < 0.5 or not items else chance.choice(items))
        elif act == 1:
            del items[place - 1]
        elif act == 2:
            other = chance.randrange(len(items))
            items[place - 1], items[other] = items[other], items[place - 1]
        elif act == 3:
            items.append(items[place - 1])
        elif act == 4:
            items = items[:place]
        elif act == 5:
            items.reverse()
        else:
            items = items * chance.choice((2, 3, 40))
        return items

    def _dict(self, pairs: dict[Tree, Tree]) -> dict[Tree, Tree]:
        chance = self.chance
        if pairs and chance.random() < 0.4:
            del pairs[chance.choice([*pairs])]
        else:
            value = chance.choice([*pairs.values()]) if pairs and chance.random() < 0.7 else self.anything(2)
            pairs[self.text()] = value
        return pairs

    def text(self, text: str = "") -> str:
        """Return another text: one of the run, an odd one, or the same with a change."""
        chance = self.chance
        act = chance.random()
        if act < 0.45:
            return chance.choice(self.texts)
        if act < 0.7:
            return chance.choice(TEXTS)
        if act < 0.8:
            return text + chance.choice(TEXTS)
        place = chance.randrange(len(text) + 1)
        if act < 0.9:
            return text[:place] + text[place + 1 :]
        digits = [index for index, char in enumerate(text) if char.isdigit()]
        if digits:
            place = chance.choice(digits)
            return text[:place] + str(chance.randrange(12)) + text[place + 1 :]
        return text[place:] + text[:place]

    def bytes(self, data: bytes) -> bytes:
        """Return other bytes: mostly what is in them, changed."""
        chance = self.chance
        if data and chance.random() < 0.7:
            try:
                inside = decode(data)
                return encode(self._changed(inside, 0))
            except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
                pass
        place = chance.randrange(len(data) + 1)
        act = chance.randrange(6)
        if act == 0:
            return chance.choice(BYTES)
        if act == 1:
            return data[:place]
        if act == 2:
            return data[:place] + chance.choice(BYTES) + data[place:]
        if act == 3 and data:
            flipped = bytearray(data)
            flipped[place - 1] ^= 1 << chance.randrange(8)
            return bytes(flipped)
        if act == 4:
            return data[place:]
        return data * 2

    def anything(self, depth: int) -> Tree:
        """Return something of any kind."""
        chance = self.chance
        act = chance.randrange(9 if depth else 6)
        if act == 0:
            return chance.choice((None, True, False))
        if act == 1:
            return chance.choice(INTS)
        if act == 2:
            return chance.choice(FLOATS)
        if act in {3, 4}:
            return self.text()
        if act == 5:
            return chance.choice(BYTES)
        if act == 6:
            return [self.anything(depth - 1) for _ in range(chance.randrange(4))]
        if act == 7:
            return {self.text(): self.anything(depth - 1) for _ in range(chance.randrange(3))}
        payload = encode(self.anything(depth - 1))
        return Ext(chance.choice((1, 2, 3, 4, 5, 6, *range(16, 30), -1, 0, 100)), payload)

    def _piece(self, tree: Tree) -> Tree:
        while isinstance(tree, (list, tuple)) and tree and self.chance.random() < 0.75:
            tree = self.chance.choice(tree)
        return tree


def texts_of(records: Mapping[str, bytes]) -> list[str]:
    """Return the texts that records name things by."""
    found: set[str] = set()

    def gather(tree: Tree) -> None:
        if isinstance(tree, str) and len(tree) < 200:
            found.add(tree)
        elif isinstance(tree, (list, tuple)):
            for item in tree:
                gather(item)
        elif isinstance(tree, dict):
            for item in (*tree, *tree.values()):
                gather(item)

    for text, data in records.items():
        found.update(key_of(text) or ())
        gather(decode(unwrap(data)))
    return sorted(found)


def resealed(header: Header, records: Mapping[str, bytes], **changes: object) -> Stored:
    """Return a checkpoint whose record sum is right."""
    digests = {key: record_digest(key, data) for key, data in records.items()}
    fields = {"records": len(records), "digest": digest_sum(digests.values()), **changes}
    header = msgspec.structs.replace(header, **fields)
    return Stored(header, dict(records), digests, Head(header, None, 1, False))


class RunForger:
    """Forges checkpoints of one workflow: its own records, changed, moved, doubled, lost and mixed."""

    def __init__(self, checkpoints: Sequence[Stored], strangers: Sequence[Stored] = ()) -> None:
        self.checkpoints = [*checkpoints]
        every: dict[str, bytes] = {}
        for stored in (*checkpoints, *strangers):
            every.update(stored.records)
        self.every = [(key, decode(unwrap(data))) for key, data in every.items()]
        self.texts = texts_of(every)
        self._bodies = [tree for _, tree in self.every]

    def forge(self, seed: int | str) -> Stored:
        """Return a checkpoint that nobody wrote."""
        forger = Forger(seed, self.texts, self._bodies)
        chance = forger.chance
        stored = chance.choice(self.checkpoints)
        records = {key: decode(unwrap(data)) for key, data in stored.records.items()}
        for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
            chance.choice(_ACTS)(self, forger, records)
        sealed = {key: wrap(encode(tree)) for key, tree in records.items()}
        return resealed(stored.header, sealed, **self._header(forger, stored.header))

    def _header(self, forger: Forger, header: Header) -> dict[str, object]:
        if forger.chance.random() > 0.08:
            return {}
        kept = {"records", "digest", "run_id", "workflow", "checkpoint_id", "format"}
        fields = [field for field in header.__struct_fields__ if field not in kept]
        names = forger.chance.sample(fields, 2)
        changed = msgspec.to_builtins({name: getattr(header, name) for name in names}, builtin_types=(bytes,))
        types = {field.name: field.type for field in msgspec.structs.fields(Header)}
        found: dict[str, object] = {}
        for name, value in changed.items():
            try:
                found[name] = msgspec.convert(forger.tree(value), types[name])
            except (msgspec.ValidationError, ValueError, OverflowError):
                continue
        return found

    def _field(self, forger: Forger, records: dict[str, Tree]) -> None:
        if records:
            key = forger.chance.choice([*records])
            records[key] = forger.tree(records[key])

    def _by_kind(self, forger: Forger, records: dict[str, Tree]) -> None:
        """Change a record of a kind that is chosen first, so that rare kinds come as often."""
        kinds = sorted({_kind(key) for key in records})
        if kinds:
            kind = forger.chance.choice(kinds)
            key = forger.chance.choice([key for key in records if _kind(key) == kind])
            records[key] = forger.tree(records[key])

    def _lose(self, forger: Forger, records: dict[str, Tree]) -> None:
        if records:
            del records[forger.chance.choice([*records])]

    def _rename(self, forger: Forger, records: dict[str, Tree]) -> None:
        if records:
            key = forger.chance.choice([*records])
            records[self._key(forger, key)] = records.pop(key)

    def _double(self, forger: Forger, records: dict[str, Tree]) -> None:
        if records:
            key = forger.chance.choice([*records])
            records[self._key(forger, key)] = records[key]

    def _swap(self, forger: Forger, records: dict[str, Tree]) -> None:
        kinds = [_kind(key) for key in records]
        several = [key for key in records if kinds.count(_kind(key)) > 1]
        if several:
            one = forger.chance.choice(several)
            other = forger.chance.choice([key for key in several if _kind(key) == _kind(one)])
            records[one], records[other] = records[other], records[one]

    def _add(self, forger: Forger, records: dict[str, Tree]) -> None:
        key, tree = forger.chance.choice(self.every)
        if forger.chance.random() < 0.5:
            key = self._key(forger, key)
        records[key] = tree if forger.chance.random() < 0.6 else forger.tree(tree)

    def _invent(self, forger: Forger, records: dict[str, Tree]) -> None:
        """Put a record of any kind that has the right classes in its fields."""
        kind = forger.chance.choice(KINDS)
        paths = [(key_of(key) or ("", "", ""))[0] for key in records] or [""]
        records[key_text(forger.chance.choice(paths), kind, forger.text("1"))] = invented(
            forger.chance, forger.text, RECORD_TYPES[kind]
        )

    def _key(self, forger: Forger, key: str) -> str:
        path, kind, name = key_of(key) or ("", "", "")
        chance = forger.chance
        act = chance.randrange(8)
        if act < 4:
            name = forger.text(name)
        elif act < 6:
            path = chance.choice([forger.text(path), *[(key_of(k) or ("",))[0] for k, _ in self.every[:50]]])
        elif act == 6:
            kind = chance.choice(KINDS)
        else:
            path, name = forger.text(path), forger.text(name)
        return key_text(path.replace("\x1f", "") if chance.random() < 0.95 else path, kind, name)


_Act: TypeAlias = Callable[[RunForger, Forger, "dict[str, Tree]"], None]
_ACTS: Final[tuple[_Act, ...]] = (
    RunForger._field, RunForger._by_kind, RunForger._by_kind, RunForger._by_kind, RunForger._by_kind, RunForger._lose,
    RunForger._rename, RunForger._double, RunForger._swap, RunForger._add, RunForger._invent,
)  # fmt: skip


def _kind(key: str) -> str:
    return (key_of(key) or ("", "", ""))[1]
