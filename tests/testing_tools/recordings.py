"""Runs that are driven, exported into files in memory, and gone through again."""

import io

import pytest

from rehydrate import InMemoryCheckpointStorage, export_run
from rehydrate.testing import ReplayError, drive, replay


async def exported(store, run_id):
    """Return an exported run, as a file to read."""
    file = io.BytesIO()
    await export_run(store, run_id, file)
    file.seek(0)
    return file


async def recorded(workflow, *inputs, answers=None, **options):
    """Drive a run and return it exported."""
    async with InMemoryCheckpointStorage() as store:
        driven = await drive(workflow, *inputs, answers=answers, checkpoint_storage=store, **options)
        return await exported(store, driven.result.run_id)


async def replayed(workflow, file, **options):
    return await replay(workflow, io.BytesIO(file.getvalue()), **options)


async def refused(workflow, file, **options):
    with pytest.raises(ReplayError) as raised:
        await replayed(workflow, file, **options)
    return raised.value
