"""The extra `pydantic-ai`: an agent with a model of that library's own that answers without a network."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from rehydrate.agents.pydantic_ai import PydanticAgent  # without the extra this line says what to install

clerk = PydanticAgent(Agent(TestModel(custom_output_text="On its way."), name="clerk"))
result = asyncio.run(clerk.workflow.run("Where is my parcel?"))
assert result.outputs == ["On its way."], result.outputs
print("works")
