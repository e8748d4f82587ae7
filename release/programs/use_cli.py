"""The extra `cli`: a run that the command starts, shows and ends."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from rehydrate import FunctionalContext, workflow


@workflow
async def greeting(name: str, ctx: FunctionalContext) -> str:
    polite = await ctx.request_info(f"Is {name} a friend?", response_type=bool)
    return f"Hello, {name}" if polite else "Who is there?"
"""


def rehydrate(*words: str, code: int) -> str:
    """Run the command with JSON as output, and return what it printed."""
    command = [str(Path(sys.executable).with_name("rehydrate")), *words, "--store", "runs.db", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != code:
        sys.exit(done.stderr)
    return done.stdout


Path("hello.py").write_text(PROGRAM)
told = json.loads(rehydrate("run", "--app", "hello.py", "--message", '"Ada"', "--run", "r", code=3))
request_id = told["requests"][0]["request_id"]
assert request_id in rehydrate("inbox", code=0)
answered = json.loads(rehydrate("answer", "--app", "hello.py", f"{request_id}=true", code=0))
assert answered["outputs"] == ["Hello, Ada"], answered
print("works")
