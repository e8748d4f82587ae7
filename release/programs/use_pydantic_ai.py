"""The extra `pydantic-ai`: an agent of that library answers, with a model of its own for tests."""

import asyncio

from rehydrate import InMemoryCheckpointStorage
from rehydrate.agents.pydantic_ai import PydanticAgent

from pydantic_ai import Agent  # isort: skip  (without the extra the line above says what to install)
from pydantic_ai.models.test import TestModel  # isort: skip

clerk = PydanticAgent(Agent(TestModel(custom_output_text="On its way."), name="clerk"))
result = asyncio.run(clerk.workflow.run("Where is it?", checkpoint_storage=InMemoryCheckpointStorage()))
assert result.outputs == ["On its way."], result.outputs
print("works")
