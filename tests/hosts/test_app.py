"""The user's file on the command line: how it is loaded, and which of its workflows and stores are meant."""

from pathlib import Path
from textwrap import dedent

import pytest

from rehydrate import Service
from rehydrate.errors import AppError, WrongCallError
from rehydrate.hosts.cli.app import load_app

HEAD = """
from rehydrate import InMemoryCheckpointStorage, Service, WorkflowBuilder, WorkflowExecutor, executor
"""
ONE = """
@executor(id="greet")
async def greet(name: str) -> str:
    return f"Hello {name}"

greeting = WorkflowBuilder("greeting", greet).build()
"""
TWO = (
    ONE
    + """
hello = WorkflowBuilder("hello", WorkflowExecutor(greeting, "inner")).build()
same = hello
"""
)


@pytest.fixture(autouse=True)
def _fresh(anew: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, text: str) -> str:
    """Write a file, and the folders around it."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + dedent(text))
    return name


def refusal(name: str) -> str:
    """Why an app cannot be loaded, or has not one workflow."""
    with pytest.raises((AppError, WrongCallError)) as error:
        load_app(name).workflow()
    return str(error.value)


def test_the_only_workflow_is_meant():
    """Its file is loaded under its own name and not as a program."""
    app = load_app(written("only_one.py", f"{ONE}\nassert __name__ == 'only_one'"))
    assert (app.workflow().name, app.storage()) == ("greeting", None)


def test_a_workflow_that_another_one_contains_is_not_meant():
    """It can be named; and a second name of the same workflow is no second one."""
    written("nested_one.py", TWO)
    assert load_app("nested_one.py").workflow().name == "hello"
    assert load_app("nested_one.py:greeting").workflow().name == "greeting"


def test_of_several_workflows_one_has_to_be_named():
    """The error lists what can be typed."""
    written("several.py", f"{ONE}\nother = WorkflowBuilder('other', greet).build()")
    assert refusal("several.py") == (
        "several.py has 2 workflows. Name one: --app with several.py:greeting, several.py:other."
    )
    assert load_app("several.py:other").workflow().name == "other"


def test_workflows_may_come_from_other_files_beside_it():
    """The folder of the file is where its imports look first, as for `python FILE`."""
    written("parts_of_it.py", ONE)
    assert load_app(written("collected.py", "from parts_of_it import greeting")).workflow().name == "greeting"


def test_the_name_of_a_file_may_have_dots():
    """`python flow.v2.py` runs it, too."""
    assert load_app(written("flow.v2.py", ONE)).workflow().name == "greeting"


def test_a_file_in_a_package_is_loaded_as_its_module():
    """Relative imports work, and its classes are those that other modules of the package import."""
    written("work/flows/__init__.py", "")
    written("work/flows/parts.py", ONE)
    written(
        "work/flows/app.py", "from .parts import greeting\nimport flows.parts\nassert flows.parts.greeting is greeting"
    )
    assert load_app("work/flows/app.py").workflow().name == "greeting"


def test_a_service_in_the_file_brings_its_workflows_its_store_and_resources():
    """Then what else is in the file does not count."""
    written(
        "served.py",
        f"""{TWO}
store = InMemoryCheckpointStorage()
service = Service(store, [greeting], {{'greeting': {{'key': 1}}}})
""",
    )
    app = load_app("served.py")
    assert isinstance(app.service, Service)
    assert (app.workflow().name, app.storage() is app.service.storage) == ("greeting", True)
    assert app.service.resources == {"greeting": {"key": 1}}


def test_workflows_in_two_stores_need_one_that_is_named():
    """One workflow, or the store."""
    made = "WorkflowBuilder('{0}', greet, checkpoint_storage=InMemoryCheckpointStorage()).build()"
    written("two_stores.py", f"{ONE}\na = {made.format('a')}\nb = {made.format('b')}")
    with pytest.raises(WrongCallError, match="are in 2 stores"):
        load_app("two_stores.py").storage()
    assert load_app("two_stores.py:a").storage() is not None


def test_two_objects_of_one_store_are_one_store():
    """Workflows are each built with the same name of a store; one of another make or with other options is not."""
    made = "{0} = WorkflowBuilder('{0}', greet, checkpoint_storage={1}).build()"
    stores = {"a": "SqliteCheckpointStorage('same.db')", "b": "SqliteCheckpointStorage('./same.db')"}
    imported = "from rehydrate import CompressedCheckpointStorage, SqliteCheckpointStorage"
    lines = [imported, ONE, *(made.format(*each) for each in stores.items())]
    written("one_store.py", "\n".join(lines))
    assert load_app("one_store.py").storage() is not None
    for other in ("CompressedCheckpointStorage(SqliteCheckpointStorage('same.db'))",
                  "SqliteCheckpointStorage('same.db', keep_events=True)",
                  "SqliteCheckpointStorage('other.db')"):  # fmt: skip
        name = written(f"two_stores_{len(other)}.py", "\n".join([*lines, made.format("c", other)]))
        with pytest.raises(WrongCallError, match="are in 2 stores"):
            load_app(name).storage()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("raises.py", "1 / 0", "raises.py cannot be loaded: ZeroDivisionError: division by zero ({folder}/raises.py"),
        ("leaves.py", "raise SystemExit(3)", "leaves.py cannot be loaded: SystemExit: 3 ({folder}/leaves.py, line 4)."),
        ("empty_one.py", "", "empty_one.py has no workflow. "),
        ("json.py", ONE, "there is another module 'json' already, so {folder}/json.py cannot be it. "),
        ("asked.py:nothing", ONE, "asked.py has no workflow 'nothing'. It has greeting."),
        ("not_there.txt", ONE, "'not_there.txt' is no Python file. "),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_an_error(tmp_path, name, text, why):
    """It names the file, and the line of the user's code."""
    written(name.partition(":")[0], f"\n{text}")
    assert refusal(name).startswith(why.format(folder=tmp_path))


def test_an_app_that_is_not_there_is_an_error():
    """Nothing is looked for anywhere else."""
    assert refusal("nowhere.py") == "'nowhere.py' is no Python file. Name the file that builds the workflows: FILE.py."
