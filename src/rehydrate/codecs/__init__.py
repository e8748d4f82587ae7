"""Codecs: values and records to bytes and back, exactly or not at all.

Stored bytes are hostile here: they are checked before they are decoded, and decoding runs none of them.
"""

from __future__ import annotations

from .bounds import check_bounds
from .envelope import FORMAT_VERSION, unwrap, wrap
from .format import MAX_BYTES, MAX_DEPTH
from .marks import Upcast, checkpointable
from .plain import plain
from .registry import TypeRegistry, type_name
from .values import ValueCodec

__all__ = [
    "FORMAT_VERSION",
    "MAX_BYTES",
    "MAX_DEPTH",
    "TypeRegistry",
    "Upcast",
    "ValueCodec",
    "check_bounds",
    "checkpointable",
    "plain",
    "type_name",
    "unwrap",
    "wrap",
]
