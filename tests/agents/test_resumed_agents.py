"""What of a conversation is in the records: resumed at every checkpoint, by bytes, and without a secret."""

import asyncio

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, WorkflowBuilder, WorkflowExecutor
from rehydrate.agents import ChatAgent, tool
from rehydrate.testing import Fault, FaultyStorage, ScriptedModel, ToolCall, assert_resumable
from tests.agents.kit import KEY, Desk, client_of, talk


def newsroom(log):
    """A writer and, one level down, an editor who asks a person before it prints."""

    @tool
    async def look_up(word: str) -> str:
        """Look a word up."""
        log.append(word)
        return word[::-1]

    @tool(approve=True)
    def print_page(text: str) -> str:
        """Print it."""
        log.append(text)
        return "printed"

    writer = ChatAgent("writer", "writer", tools=[look_up])
    editing = WorkflowBuilder("editing", ChatAgent("editor", "editor", tools=[print_page])).build()
    editor = WorkflowExecutor(editing, id="editing")
    return WorkflowBuilder("newsroom", writer).add_chain([writer, editor]).build()


SCRIPTS = {
    "writer": [[ToolCall("look_up", {"word": "abc"}), ToolCall("look_up", {"word": "def"})], "cba fed", "2nd text"],
    "editor": [ToolCall("print_page", {"text": "cba fed"}), "Out."],
}


def test_two_agents_and_a_person_go_on_from_every_checkpoint():
    """Each restart ends as the uninterrupted run: outputs, questions, events, and the state of both conversations."""
    log = []

    async def scenario(model):
        async with client_of(model) as client:
            driven = await assert_resumable(
                lambda: newsroom(log), ["write"], answers=lambda request: True, resources={"openai": client}, keep=[log]
            )
            assert driven.outputs == ["Out."]
            assert [request.path for request in driven.requests] == ["editing#1/editor#1"]
            assert driven.crashes > 8

    with ScriptedModel(SCRIPTS) as model:
        asyncio.run(scenario(model))


def test_a_turn_costs_what_it_says_and_not_what_was_said_before():
    """After twenty turns a turn writes as many bytes as after two."""
    agent = ChatAgent("clerk", "m")
    written = []

    def note(commit):
        written.append(sum(len(put.data) for put in commit.puts))
        return False

    async def scenario(call, model):
        call["checkpoint_storage"] = FaultyStorage(InMemoryCheckpointStorage(), Fault("fails", when=note))
        result, costs = None, []
        for _ in range(20):
            result = await agent.workflow.run("x" * 500, checkpoint=result, **call)
            costs.append(sum(written))
            written.clear()
        assert len(result.checkpoint.state["conversation"]) == 20
        assert max(costs[15:]) < 1.5 * costs[1]

    talk(lambda request: "y" * 500, scenario)


def test_the_store_holds_neither_the_key_nor_the_instructions(tmp_path):
    """Of the client and of what is configured nothing is in the file, after a run with tools and a question."""
    desk = Desk(approve=True)
    agent = ChatAgent("clerk", "the-model", "Instructions of today.", tools=desk.tools)

    async def scenario(call, model):
        async with SqliteCheckpointStorage(tmp_path / "runs.db") as store:
            call["checkpoint_storage"] = store
            paused = await agent.workflow.run("the message", **call)
            await agent.workflow.run(checkpoint=paused, responses=[paused.pending_requests[0].answer(True)], **call)

    talk([ToolCall("pay", {"order": "o-7", "amount": 3}), "Done."], scenario)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"the message" in stored
    assert [word for word in (KEY, "Instructions", "the-model", "Look up what") if word.encode() in stored] == []
