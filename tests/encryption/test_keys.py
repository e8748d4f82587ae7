"""Keys: which one is needed, what a wrong one is called, how they change, and that none is ever shown."""

import asyncio
import copy
import pickle
import sys
import traceback
from collections.abc import Callable

import pytest

from rehydrate import EncryptedCheckpointStorage, InMemoryCheckpointStorage, KeyRing, WorkflowBuilder, executor
from rehydrate.errors import (
    EncryptedCheckpointError,
    MissingExtraError,
    NotEncryptedError,
    RehydrateError,
    WrongCallError,
    WrongKeyError,
)
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.ciphers import HKDF, SHA256
from rehydrate.testing.store_contract import CommitMaker, ManualClock
from tests.encryption.kit import NEW, OLD, OTHER, MeddledStorage, ring


@executor(id="greet")
async def greet(name: str) -> str:
    return f"hello {name}"


def greeting(store: object) -> object:
    return WorkflowBuilder("greeting", greet, checkpoint_storage=store).build()


def greeted() -> InMemoryCheckpointStorage:
    """Return the inside of a store that holds the run `r` under key 2026-11."""
    inner = InMemoryCheckpointStorage()
    greeting(EncryptedCheckpointStorage(inner, ring())).run_sync("Ada", run_id="r")
    return inner


@pytest.mark.parametrize(
    ("keys", "key_id", "text"),
    [
        (KeyRing({"2026-11": OTHER}), "2026-11", "which has other bytes in this key ring"),
        (KeyRing({"2027-05": NEW}), "2026-11", "and this key ring has '2027-05'"),
        (KeyRing({"2027-05": NEW, "2026-11": OLD}, current="2026-11"), "2026-11", "the name of the run of"),
    ],
    ids=["other bytes", "another key", "names under another"],
)
def test_a_wrong_key_is_not_damage_and_starts_nothing(keys: KeyRing, key_id: str, text: str) -> None:
    """Under other keys every call says which one is missing; the run is not taken for one that is not there."""
    inner = greeted()
    store = EncryptedCheckpointStorage(inner, keys)
    for call in (
        lambda: greeting(store).run_sync("Bob", run_id="r"),
        lambda: greeting(store).run_sync(checkpoint="latest", run_id="r"),
        lambda: asyncio.run(store.head("r")),
        lambda: asyncio.run(store.runs()),
        lambda: asyncio.run(store.commit(CommitMaker().claim())),
    ):
        with pytest.raises(WrongKeyError, match=text) as raised:
            call()
        assert (raised.value.key_id, raised.value.known) == (key_id, keys.ids)
    assert [header.superstep for header in asyncio.run(inner.runs())] == [1]


def test_old_keys_read_and_the_current_one_writes() -> None:
    """After a new key is added, what was written stays readable and what is written names the new one."""
    inner = MeddledStorage(clock=ManualClock())
    maker = CommitMaker()
    asyncio.run(EncryptedCheckpointStorage(inner, ring()).commit(maker.claim({"a": b"1", "b": b"1"})))
    both = KeyRing({"2026-11": OLD, "2027-05": NEW})
    assert (both.current, both.names) == ("2027-05", "2026-11")
    store = EncryptedCheckpointStorage(inner, both)
    asyncio.run(store.commit(maker.step({"a": b"2"})))
    stored = asyncio.run(store.load(Latest("run")))
    assert stored is not None
    assert stored.records == {"a": b"2", "b": b"1"}
    inside = asyncio.run(inner.honest("run:1"))
    assert sorted(data[4:11] for data in inside.records.values()) == [b"2026-11", b"2027-05"]
    assert inside.header.sealed[4:11] == b"2027-05"
    with pytest.raises(WrongKeyError) as raised:
        asyncio.run(EncryptedCheckpointStorage(inner, ring()).load(Latest("run")))
    assert raised.value.key_id == "2027-05"


def test_plain_runs_are_refused_by_an_encrypted_store() -> None:
    """A store that holds plain runs, or gets one beside encrypted ones, is not used as an encrypted one."""
    plain = InMemoryCheckpointStorage()
    first = greeting(plain).run_sync("Ada", run_id="r")
    store = EncryptedCheckpointStorage(plain, ring())
    with pytest.raises(NotEncryptedError, match="use a new place for encrypted runs"):
        greeting(store).run_sync("Bob")
    assert [header.run_id for header in asyncio.run(plain.runs())] == ["r"]
    mixed = greeted()
    beside = greeting(mixed).run_sync("Ada", run_id="plain")
    store = EncryptedCheckpointStorage(mixed, ring())
    with pytest.raises(NotEncryptedError, match=f"checkpoint '{beside.checkpoint_id}' is not encrypted"):
        greeting(store).run_sync(checkpoint=beside.checkpoint_id)
    assert greeting(store).run_sync(checkpoint="latest", run_id="r").outputs == ["hello Ada"]
    assert first.outputs == ["hello Ada"]


def test_encrypted_runs_are_refused_without_keys() -> None:
    """A plain store that meets an encrypted checkpoint says that it needs keys, in a call and in an inspection."""
    inner = greeted()
    (header,) = asyncio.run(inner.runs())
    for call in (
        lambda: greeting(inner).run_sync(checkpoint=header.checkpoint_id),
        lambda: asyncio.run(inner.inspect(header.checkpoint_id)),
    ):
        with pytest.raises(EncryptedCheckpointError, match="Put EncryptedCheckpointStorage with its KeyRing around"):
            call()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: KeyRing({}), "at least one key"),
        (lambda: KeyRing(OLD), "at least one key"),
        (lambda: KeyRing({"a": OLD[:16]}), "key 'a' has 16 bytes"),
        (lambda: KeyRing({"a": "x" * 32}), "key 'a' is no bytes"),
        (lambda: KeyRing({"": OLD}), "the id of a key is ''"),
        (lambda: KeyRing({"é": OLD}), "the id of a key is 'é'"),
        (lambda: KeyRing({"a\n": OLD}), "the id of a key"),
        (lambda: KeyRing({3: OLD}), "the id of a key is 3"),
        (lambda: KeyRing({"a": OLD}, current="b"), "current is 'b'"),
        (lambda: KeyRing({"a": OLD}, names="b"), "names is 'b'"),
        (lambda: EncryptedCheckpointStorage(InMemoryCheckpointStorage(), {"a": OLD}), "keys is no KeyRing"),
    ],
)
def test_a_wrong_ring_is_refused(make: Callable[[], object], text: str) -> None:
    """What makes no ring of keys is a wrong call that says why and shows no key."""
    with pytest.raises(WrongCallError, match=text) as raised:
        make()
    assert not shown(str(raised.value))


def shown(text: str) -> bool:
    """Tell whether a key can be read in a text, in any way in which bytes are written."""
    keys = (OLD, NEW, OTHER)
    return any(form in text for key in keys for form in (repr(key)[2:-1], key.hex(), str(list(key))[1:-1]))


def test_no_key_is_shown() -> None:
    """No key stands in the text, the attributes' texts or a copy of a ring, nor in an error with all its variables."""
    assert shown(repr(OLD))
    keys = KeyRing({"2026-11": OLD, "2027-05": NEW})
    assert repr(keys) == "KeyRing('2026-11', '2027-05'; current='2027-05', names='2026-11')"
    texts = [repr(keys), str(keys), f"{keys}", repr(EncryptedCheckpointStorage(InMemoryCheckpointStorage(), keys))]
    texts += [repr(key) for key in keys._keys.values()]
    for store_away in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="keys do not travel with data"):
            store_away(keys)
    inner = greeted()
    wrong = EncryptedCheckpointStorage(inner, KeyRing({"2026-11": OTHER}))
    for call in (wrong.head("r"), wrong.load(Latest("r")), wrong.commit(CommitMaker().claim())):
        try:
            asyncio.run(call)
        except RehydrateError as error:
            whole = traceback.TracebackException.from_exception(error, capture_locals=True)
            texts += [repr(error), repr(vars(error)), *whole.format()]
    assert len(texts) > 20
    assert not [text for text in texts if shown(text)]


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `cryptography` is not installed, making a ring says what to install."""
    monkeypatch.delitem(sys.modules, "rehydrate.stores.ciphers", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.kdf.hkdf", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rehydrate\[encryption\]'"):
        ring()


def test_keys_are_derived_as_the_standard_says() -> None:
    """HKDF with SHA-256 gives the bytes of the first test vector of RFC 5869."""
    material, salt = b"\x0b" * 22, bytes(range(13))
    okm = HKDF(SHA256(), 42, salt, bytes(range(0xF0, 0xFA))).derive(material)
    assert okm.hex().startswith("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf")
