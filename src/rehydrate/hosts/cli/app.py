"""The app: the user's own Python file, named on the command line, with the workflows that a command works on.

It is loaded by its path, as `python FILE` loads it but not as `__main__`, and only because the person who runs the
command names it: nothing that is stored or received ever chooses what is loaded (decision 0025).
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from rehydrate.api.workflow import Workflow
from rehydrate.errors import AppError, RehydrateError, WrongCallError
from rehydrate.graph.definition import Definition
from rehydrate.ports import CheckpointStorage, place_of
from rehydrate.service.service import Service


class NamedWorkflow(NamedTuple):
    """A workflow under the name of its variable."""

    variable: str
    workflow: Workflow


@dataclass(frozen=True)
class App:
    """The workflows of a file, or those that its service has."""

    path: str
    workflows: tuple[NamedWorkflow, ...]
    service: Service | None = None

    def workflow(self) -> Workflow:
        """Return the workflow that is meant: the only one that is no part of another. Raises `WrongCallError`."""
        inside = {id(part) for named in self.workflows for part in _parts(named.workflow.definition)}
        roots = [named for named in self.workflows if id(named.workflow.definition) not in inside]
        if len(roots) != 1:
            names = ", ".join(f"{self.path}:{named.variable}" for named in roots)
            raise WrongCallError(f"{self.path} has {len(roots)} workflows.", f"Name one: --app with {names}.")
        return roots[0].workflow

    def storage(self) -> CheckpointStorage | None:
        """Return the one store that the workflows were built with. Raises `WrongCallError` where there are several."""
        if self.service is not None:
            return self.service.storage
        found = {_which(store): store for named in self.workflows if (store := named.workflow.checkpoint_storage)}
        if len(found) > 1:
            raise WrongCallError(
                f"the workflows of {self.path} are in {len(found)} stores.",
                "Name one workflow, --app FILE.py:NAME, or the store, --store.",
            )
        return next(iter(found.values()), None)


def _which(store: CheckpointStorage) -> object:
    """Return what two objects of one store, made with the same options, have in common."""
    place = place_of(store)
    return id(store) if place is None else (place.name, store.keeps_events)


def load_app(name: str) -> App:
    """Load the app that `FILE.py` or `FILE.py:NAME` names; `NAME` is a variable in it.

    Raises `WrongCallError` for what is not there, and `AppError` where the file cannot be loaded.
    """
    path, variable = _split(name)
    module = _loaded(path)
    services, workflows = _found(module)
    if variable is not None:
        chosen = getattr(module, variable, None)
        if isinstance(chosen, Service):
            return _of_service(str(path), chosen)
        if isinstance(chosen, Workflow):
            return App(str(path), (NamedWorkflow(variable, chosen),))
        known = ", ".join([*services, *(named.variable for named in workflows)]) or "none"
        raise WrongCallError(f"{path} has no workflow {variable!r}.", f"It has {known}.")
    if len(services) == 1:
        return _of_service(str(path), next(iter(services.values())))
    if services:
        raise WrongCallError(f"{path} has {len(services)} services.", f"Name one of {', '.join(services)}.")
    if not workflows:
        raise WrongCallError(f"{path} has no workflow.", "Keep built workflows, or a Service, in variables of its own.")
    return App(str(path), workflows)


def _of_service(path: str, service: Service) -> App:
    return App(path, tuple(NamedWorkflow(workflow.name, workflow) for workflow in service.workflows), service)


def _split(name: str) -> tuple[Path, str | None]:
    text, colon, variable = name.rpartition(":")
    if not colon or variable.endswith(".py"):
        text, variable = name, ""
    path = Path(text)
    if path.suffix != ".py" or not path.is_file():
        raise WrongCallError(f"{text!r} is no Python file.", "Name the file that builds the workflows: FILE.py.")
    return path, variable or None


def _found(module: ModuleType) -> tuple[dict[str, Service], tuple[NamedWorkflow, ...]]:
    services: dict[str, Service] = {}
    workflows: dict[int, NamedWorkflow] = {}
    for variable, value in vars(module).items():
        if isinstance(value, Service):
            services[variable] = value
        elif isinstance(value, Workflow):
            workflows.setdefault(id(value), NamedWorkflow(variable, value))
    return services, tuple(workflows.values())


def _parts(definition: Definition) -> Iterator[Definition]:
    """Give all definitions inside of one, each once."""
    seen: set[int] = set()
    waiting = list(definition.children.values())
    while waiting:
        found = waiting.pop()
        if id(found) not in seen:
            seen.add(id(found))
            waiting.extend(found.children.values())
            yield found


def _loaded(path: Path) -> ModuleType:
    try:
        return _load(path)
    except RehydrateError:
        raise
    except (Exception, SystemExit) as error:
        raise AppError(str(path), _where(error)) from error


def _load(path: Path) -> ModuleType:
    """Load a file, with the packages around it, all by their paths."""
    path = path.resolve()
    packages = _packages(path)
    root = packages[0].parent if packages else path.parent
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # where `python FILE` looks first
    for package in packages:
        _module(".".join(package.relative_to(root).parts), package / "__init__.py", package)
    return _module(".".join((*path.parent.relative_to(root).parts, path.stem)), path)


def _packages(path: Path) -> list[Path]:
    """Return the packages that a file is in, outermost first."""
    found: list[Path] = []
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        found.insert(0, folder)
    return found


def _module(name: str, path: Path, package: Path | None = None) -> ModuleType:
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) is not None and Path(known.__file__ or "").resolve() == path:
            return known
        raise WrongCallError(f"there is another module {name!r} already, so {path} cannot be it.", "Rename the file.")
    locations = None if package is None else [str(package)]
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=locations)
    if spec is None or spec.loader is None:
        raise WrongCallError(f"{path} is no Python file.", "Name the file that builds the workflows: FILE.py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs, as types look up their own module by its name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:  # it is not where a file is called `flow.v2.py`
        setattr(sys.modules[parent], last, module)
    return module


def _where(error: BaseException) -> str:
    """Return an error in one line, with the line of the user's code that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if not frame.filename.startswith("<frozen") and frame.filename != __file__]
    place = f" ({ours[-1].filename}, line {ours[-1].lineno})" if ours else ""
    return "".join(traceback.format_exception_only(error)).strip() + place
