"""Receipts: what is left of requests that were closed, so that a second answer is told from a foreign one.

They stand at the run, since they outlive the scopes that asked. Single ones are packed, for a load costs by the record.
"""

from __future__ import annotations

from typing import Final

from rehydrate.model.records import ReceiptRecord, ReceiptsRecord

from .change import Change
from .run import Run, known_name

#: So many single receipts become one record.
PACK: Final = 32


def leave_receipt(change: Change, path: str, name: str, record: ReceiptRecord) -> None:
    """Note how a request was closed, under the name that the outside knows."""
    draft = change.draft
    draft.put("", "receipt", known_name(draft, path, name), record)
    draft.remove(path, "alias", name)
    if draft.count("", "receipt") < PACK:
        return
    singles: dict[str, ReceiptRecord] = dict(sorted(draft.items("", "receipt")))
    draft.clear("", "receipt")
    draft.put("", "receipts", f"{draft.count('', 'receipts'):08d}", ReceiptsRecord(singles))


def receipts(run: Run) -> dict[str, ReceiptRecord]:
    """Return all receipts by the names of their requests."""
    found: dict[str, ReceiptRecord] = {}
    for pack in run.table("", "receipts").values():
        found.update(pack.receipts)
    found.update(run.table("", "receipt"))
    return found
