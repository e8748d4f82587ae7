"""Covers: what a store is given of a run that it must not be able to read, and the way back.

Each row and header of the model becomes one of the same class, with pseudonyms and numbers in clear and all else sealed
in one of its fields. Whatever is not named here as clear is hidden, also a field that is added later.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple, TypeVar

import msgspec

from rehydrate.errors import CheckpointCorruptError, CheckpointFormatError, NotEncryptedError, WrongKeyError
from rehydrate.model.checkpoint import FORMAT, Header, Offer, Put, RequestRow, StoredEvent, TurnRow

from .hidden_texts import HiddenTexts
from .key_ring import KeyRing
from .pseudonyms import Pseudonyms
from .run_sums import RunSum
from .sealing import Opened, Purpose, Sealing

_KEY_LENGTH_BYTES: Final = 4
#: What the digest of a taken offer begins with that is of its sealed body.
_SEALED_DIGEST: Final = b"sealed "
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class _HeaderBody(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is sealed of a header: all of it, the keyed sum of its records, and under which key names are."""

    header: msgspec.Raw
    keyed: bytes
    names: str
    names_check: bytes


class _Format(msgspec.Struct, array_like=True):
    """What every header of every version begins with."""

    format: int


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_body: Final = msgspec.msgpack.Decoder(_HeaderBody).decode
_decode_format: Final = msgspec.msgpack.Decoder(_Format).decode
_decode_header: Final = msgspec.msgpack.Decoder(Header).decode


class OpenedHeader(NamedTuple):
    """A header, its run's salt, and the keyed sum of its records."""

    header: Header
    salt: bytes
    keyed: int


class Covers:
    """Makes and opens covers with one key ring."""

    def __init__(self, keys: KeyRing) -> None:
        self.keys = keys
        self.names = Pseudonyms(keys)
        self.texts = HiddenTexts(keys)
        self._sealing = Sealing(keys)

    def record(self, run: str, place: str, salt: bytes, seq: int, put: Put) -> bytes:
        """Return a record sealed, with its key."""
        key = put.key.encode()
        body = b"".join((len(key).to_bytes(_KEY_LENGTH_BYTES, "big"), key, put.data))
        return self._sealing.seal(Purpose.RECORD, (run, place), salt, seq, body)

    def open_record(self, run: str, place: str, data: bytes, what: str) -> tuple[str, bytes]:
        """Return the key and data of a sealed record; raises as `open_header`."""
        _, _, body = self._sealing.open(Purpose.RECORD, (run, place), data, what)
        start = _KEY_LENGTH_BYTES + int.from_bytes(body[:_KEY_LENGTH_BYTES], "big")
        return body[_KEY_LENGTH_BYTES:start].decode(), body[start:]

    def header(self, header: Header, found: RunSum) -> Header:
        """Return the cover of a header, over these records."""
        clear = self._clear(header, len(found.digests), found.total.to_bytes(32, "big"))
        keyed = found.keyed.to_bytes(32, "big")
        body = _encode(_HeaderBody(msgspec.Raw(_encode(header)), keyed, self.keys.names, self.keys.names_check))
        place = (clear.run_id, header.checkpoint_id)
        sealed = self._sealing.seal(Purpose.HEADER, place, found.salt, header.seq, body)
        return msgspec.structs.replace(clear, sealed=sealed)

    def open_header(self, cover: Header, run: str | None = None) -> OpenedHeader:
        """Return what is under the cover of a header, which must be `run`'s. Raises `WrongKeyError`,
        `NotEncryptedError`, `CheckpointFormatError` or `CheckpointCorruptError`."""
        what = f"checkpoint {cover.checkpoint_id!r}"
        if run is not None and cover.run_id != run:
            raise CheckpointCorruptError(f"a checkpoint of run {run!r}", "it is another run's")
        if not cover.sealed:
            raise NotEncryptedError(what)
        place = (cover.run_id, cover.checkpoint_id)
        salt, number, sealed = self._sealing.open(Purpose.HEADER, place, cover.sealed, what)
        try:
            body = _decode_body(sealed)
            found = _decode_format(body.header).format
            if found > FORMAT:
                raise CheckpointFormatError(what, found, FORMAT)
            header = _decode_header(body.header)
        except msgspec.MsgspecError as error:
            raise CheckpointCorruptError(what, str(error)) from None
        if body.names_check != self.keys.names_check:
            raise WrongKeyError(f"the name of the run of {what}", body.names, self.keys.ids)
        # A store that forgets checkpoints mends the lineage of those that stay: the link is its own to say.
        header = msgspec.structs.replace(header, previous_checkpoint_id=cover.previous_checkpoint_id)
        clear = msgspec.structs.replace(self._clear(header, cover.records, cover.digest), sealed=cover.sealed)
        # Compared as bytes: a time may be NaN, which is not equal to itself.
        if number != header.seq or _encode(clear) != _encode(cover):
            raise CheckpointCorruptError(what, "what stands in clear beside it was changed")
        return OpenedHeader(header, salt, int.from_bytes(body.keyed, "big"))

    def _clear(self, header: Header, records: int, digest: bytes) -> Header:
        """Return what a store sees of a header: pseudonyms, ids that were made here, numbers and times.

        Count and digest are over the records as the store has them; the keyed sum is what stands for these.
        """
        return Header(
            format=header.format,
            run_id=self.names.run(header.run_id),
            workflow=self.names.workflow(header.workflow),
            checkpoint_id=header.checkpoint_id,
            seq=header.seq,
            previous_checkpoint_id=header.previous_checkpoint_id,
            status=header.status,
            turn=header.turn,
            superstep=header.superstep,
            created=header.created,
            pending=header.pending,
            events=header.events,
            records=records,
            digest=digest,
            cause=header.cause,
            size=header.size,
            changed=header.changed,
            due=header.due,
        )

    def request(self, row: RequestRow, salt: bytes, seq: int) -> RequestRow:
        """Return the cover of a request's row."""
        run = self.names.run(row.run_id)
        sealed = self._sealing.seal_text(Purpose.REQUEST, (run, row.request_id), salt, seq, _encode(row))
        return RequestRow(row.request_id, run, sealed, row.state)

    def open_request(self, cover: RequestRow, request_id: str) -> RequestRow:
        """Return the row of a request under its cover; raises as `open_header`."""
        what = f"request {request_id!r}"
        place = (cover.run_id, cover.request_id)
        row = _decoded(self._sealing.open_text(Purpose.REQUEST, place, cover.path, what), RequestRow, what)
        if RequestRow(request_id, self.names.run(row.run_id), cover.path, row.state) != cover:
            raise CheckpointCorruptError(what, "what stands in clear beside it was changed")
        return row

    def turn(self, row: TurnRow, salt: bytes, seq: int) -> TurnRow:
        """Return the cover of a turn's row; its digest is one of what a user supplied, so it is hidden, too."""
        clear = self._clear_turn(row, "")
        sealed = self._sealing.seal_text(Purpose.TURN, (clear.workflow, clear.key), salt, seq, _encode(row))
        return msgspec.structs.replace(clear, digest=sealed)

    def open_turn(self, cover: TurnRow, place: tuple[str, str], what: str) -> TurnRow:
        """Return the row under a cover, of the turn with these pseudonyms; raises as `open_header`."""
        row = _decoded(self._sealing.open_text(Purpose.TURN, place, cover.digest, what), TurnRow, what)
        if self._clear_turn(row, cover.digest) != cover:
            raise CheckpointCorruptError(what, "what stands in clear beside it was changed")
        return row

    def _clear_turn(self, row: TurnRow, digest: str) -> TurnRow:
        return TurnRow(
            workflow=self.names.workflow(row.workflow),
            key=self.names.turn_key(row.workflow, row.key),
            run_id=self.names.run(row.run_id),
            number=row.number,
            base=None,
            digest=digest,
            checkpoint_id=row.checkpoint_id,
            status=row.status,
        )

    def event(self, run: str, salt: bytes, number: int, data: bytes) -> bytes:
        """Return the cover of an event."""
        return self._sealing.seal(Purpose.EVENT, (run,), salt, number, data)

    def open_event(self, run: str, cover: StoredEvent) -> StoredEvent:
        """Return the event under a cover; raises as `open_header`."""
        what = f"event {cover.number}"
        opened = self._sealing.open(Purpose.EVENT, (run,), cover.data, what)
        if opened.number != cover.number:
            raise CheckpointCorruptError(what, f"it is event {opened.number}")
        return StoredEvent(cover.number, opened.body)

    def offer(self, offer: Offer) -> Offer:
        """Return the cover of an offer: of the same offer again the same, so that the store can tell."""
        run = self.names.run(offer.run_id)
        key = self.texts.offer_key(run, offer.key)
        if offer.taken:
            return Offer(run, key, b"", offer.number, self._digest(offer.digest), taken=True)
        body = self._sealing.seal_same(Purpose.OFFER, (run, key), offer.body)
        return Offer(run, key, body, offer.number, hashlib.sha256(body).digest())

    def open_offer(self, run_id: str, cover: Offer) -> Offer:
        """Return the offer to a run under a cover; raises as `open_header`."""
        what = f"offer {cover.number} to run {run_id!r}"
        if cover.run_id != self.names.run(run_id):
            raise CheckpointCorruptError(what, "it is another run's")
        key = self.texts.open_offer_key(cover.run_id, cover.key)
        if cover.taken:
            return Offer(run_id, key, b"", cover.number, _SEALED_DIGEST + cover.digest, taken=True)
        body = self._sealing.open(Purpose.OFFER, (cover.run_id, cover.key), cover.body, what).body
        return Offer(run_id, key, body, cover.number, hashlib.sha256(body).digest())

    def _digest(self, digest: bytes) -> bytes:
        """Return the digest of a body that is not there any more, as the store may see it."""
        if digest.startswith(_SEALED_DIGEST) and len(digest) > hashlib.sha256().digest_size:
            return digest[len(_SEALED_DIGEST) :]
        return self.keys.hidden(digest)


def _decoded(opened: Opened, kind: type[_Struct], what: str) -> _Struct:
    try:
        return msgspec.msgpack.decode(opened.body, type=kind)
    except msgspec.MsgspecError as error:
        raise CheckpointCorruptError(what, str(error)) from None
