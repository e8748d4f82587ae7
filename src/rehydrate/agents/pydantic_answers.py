"""Whether an answer that a model of pydantic-ai gave is a whole one.

That library hands on what has come, with or without an end, and in places says "stop" where a provider said nothing.
"""

from __future__ import annotations

from pydantic_ai import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from .failures import check_end


def check_whole(response: ModelResponse, model: Model) -> None:
    """Raise `ModelUnavailableError` or `ModelReplyError` for an answer that is cut off, filtered or refused."""
    if response.state == "suspended":  # its provider still works on it, and pydantic-ai asks for the rest
        return
    refusal = str((response.provider_details or {}).get("refusal") or "")
    check_end(model.model_name, _end(response, model), refusal)


def _end(response: ModelResponse, model: Model) -> str:
    """Return the reason that was given for its end, nothing where it broke off."""
    told = str((response.provider_details or {}).get("finish_reason") or "")
    if response.state != "complete":
        return ""
    if response.provider_url is None:  # made in this process, as those of `FunctionModel`, which give no reasons
        return response.finish_reason or told or "stop"
    if not told and response.finish_reason in {"stop", "tool_call"} and _makes_up_ends(model):
        return ""
    return response.finish_reason or told


def _makes_up_ends(model: Model) -> bool:
    """Tell whether a model may say "stop" for a provider that said nothing: one of the chat-completions protocol."""
    if isinstance(model, WrapperModel):
        return _makes_up_ends(model.wrapped)
    if isinstance(model, FallbackModel):
        return any(_makes_up_ends(inner) for inner in model.models)
    return any(kind.__name__ == "OpenAIChatModel" for kind in type(model).__mro__)  # importing it needs its client
