"""How random sub-workflows are nested: drawn beside the graphs, so that these stay what they are without it.

The executor that answers intercepted requests is made here too; it answers, asks the outside first, or does nothing.
"""

from __future__ import annotations

from random import Random

from rehydrate import (
    Executor,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    Workflow,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)
from rehydrate.errors import LateResponseError
from tests.differential.messages import Item, Question, answer_to, mix
from tests.differential.plans import RENAMED, GraphPlan, NestingPlan, NodePlan


def draw_nesting(seed: int, graphs: dict[str, GraphPlan], *, intercept: float = 0.4) -> None:
    """Choose how each sub-workflow of a family is nested; in a third of the families all in the plain way.

    `intercept`: how likely the graph around a sub-workflow takes its questions.
    """
    random = Random(f"nesting {seed}")
    if random.random() < 0.33:
        return
    for graph in graphs.values():
        mapped = _inside_maps(graph)
        for node in graph.nodes:
            if node.kind == "workflow":
                node.nesting = NestingPlan(
                    intercept=random.random() < intercept,
                    shared=random.random() < 0.4 and node.id not in mapped,
                    mapped=random.random() < 0.5,
                    timed=random.random() < 0.3,
                )


def _inside_maps(graph: GraphPlan) -> set[str]:
    """Return the nodes that work for the items of a map, of which none may be shared."""
    found: set[str] = set()
    for group in graph.groups:
        if group.kind == "map":
            waiting, end = [group.others[0]], group.others[1]
            seen: set[str] = set()
            while waiting:
                node = waiting.pop()
                if node != end and node not in seen:
                    seen.add(node)
                    waiting += graph.leaving(node)
            found |= seen
    return found


def nested(plan: NodePlan, child: Workflow, *, has_edges: bool) -> WorkflowExecutor:
    """Make the node of a sub-workflow."""
    nesting = plan.nesting
    mapping: dict[str, dict[str, str]] = {}
    if nesting.mapped:
        mapping["inputs"] = {"log": "bag", "sum": "fold", "flag": "flag", f"own_{plan.id}": "log"}
        mapping["outputs"] = {"log": f"own_{plan.id}", "sum": f"sum_of_{plan.id}", "flag": "flag"}
    return WorkflowExecutor(
        child,
        id=plan.id,
        requests="intercept" if nesting.intercept else "propagate",
        isolation="shared" if nesting.shared else "isolated",
        forward_outputs="message" if has_edges else "output",
        timeout=1e6 if nesting.timed else None,
        **mapping,
    )


def first_name(text: str) -> str:
    """A path or name as the first version of the graph has it."""
    return text.replace(RENAMED, "")


class Police(Executor):
    """Answers what a sub-workflow asks, by a rule over the question."""

    @handler
    async def on_request(
        self, message: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage, Item]
    ) -> None:
        question = message.request.data
        assert isinstance(question, Question)
        mark = mix(
            *map(first_name, (self.id, message.path, message.request.name)), message.request.response_type, question
        )
        if mark % 5 == 0:
            ctx.yield_output(Item(mix(mark, "ignored"), 0))
        elif mark % 5 < 3:
            ctx.set_state(f"kept_{mark}", (message.path, message.request.name))
            ctx.request_info(Question(first_name(self.id), mark, question.item), response_type=int)
        else:
            self._answer(ctx, message.create_response(answer_to(question)))

    @response_handler
    async def on_answer(
        self, question: Question, answer: int, ctx: WorkflowContext[SubWorkflowResponseMessage, Item]
    ) -> None:
        path, name = ctx.get_state(f"kept_{question.number}")
        self._answer(ctx, SubWorkflowResponseMessage(path, name, answer % 100))

    def _answer(
        self, ctx: WorkflowContext[SubWorkflowResponseMessage, Item], message: SubWorkflowResponseMessage
    ) -> None:
        try:
            ctx.send_message(message)
        except LateResponseError:
            ctx.yield_output(Item(mix(first_name(message.path), first_name(message.name), "late"), 0))
