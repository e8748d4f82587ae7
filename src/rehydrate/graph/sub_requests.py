"""What passes between a workflow and the parent that answers its requests.

Plain frozen values, storable like any message. They hold no reference to a run.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SubWorkflowRequest:
    """A request of a sub-workflow. `response_type` is the name of the type that it expects.

    `request_id` is the id by which the outside knows it, should nobody inside answer; `name` names it in its scope.
    """

    request_id: str
    executor_id: str
    data: object
    response_type: str
    name: str


@dataclass(frozen=True)
class SubWorkflowRequestMessage:
    """A request that the parent is to answer; `path` is the scope that asked."""

    path: str
    request: SubWorkflowRequest

    def create_response(self, value: object) -> SubWorkflowResponseMessage:
        """Return the answer to send; its type is checked where it is sent."""
        return SubWorkflowResponseMessage(self.path, self.request.name, value)


@dataclass(frozen=True)
class SubWorkflowResponseMessage:
    """An answer on its way to the scope at `path` that asked for it; sent like a message, it needs no edge."""

    path: str
    name: str
    value: object
