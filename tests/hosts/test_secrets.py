"""A password in the URL of a store reaches no output, wherever in the URL it stands."""

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from rehydrate.errors import WrongCallError
from rehydrate.wiring import is_secret_name, named_checkpoint_storage
from tests.hosts.commands import LARGE, Command

SECRET = "s3crET"
#: A word that could be told from it.
ENDS = st.text("@/:?#&=%[ '\"\\x", max_size=3)
SCHEMES = st.sampled_from(["postgresql://", "postgres://", "mysql://", "sqlite://", "postgresql:", "postgresql:/"])
#: Each refused before anything is opened: a store in PostgreSQL connects when it is used.
PLACES = st.sampled_from([
    "me:{}@host/db", "{}@host/db", "host/db?password={}", "host/db?user=me&password={}&x=y", "/runs.db?password={}",
    "me:{}@[host/db", "me:{}@host/db?keep_events=perhaps", "me:{}@host/db#part",
])  # fmt: skip


@given(SCHEMES, PLACES, ENDS, ENDS)
@settings(max_examples=300, deadline=None)
def test_an_error_of_a_name_shows_no_password(scheme, place, before, after):
    """Also where the scheme is mistyped, or the password holds what should have been escaped."""
    name = scheme + place.format(f"{before}{SECRET}{after}")
    shown = ""
    try:
        shown = repr(named_checkpoint_storage(name, create=False))
    except WrongCallError as error:
        shown = str(error)
    assert SECRET not in shown
    assert is_secret_name(name)


@pytest.fixture
def store(postgres_database: str) -> str:
    """The URL of a database, with a password that its server does not ask for."""
    said = conninfo_to_dict(postgres_database)
    return f"postgresql://{said['user']}:{SECRET}@/{said['dbname']}?host={quote(str(said['host']), safe='')}"


def test_what_commands_suggest_names_the_store_by_the_environment(command: Command, store, monkeypatch):
    """Results, documents and errors of a store whose URL holds a password, as option and in the environment."""
    waits = command("run", "-m", LARGE, "--run", "r", "-s", store)
    assert waits.code == 3
    assert 'next     rehydrate answer --store "$REHYDRATE_STORE" ' in waits.out
    calls = [
        ("run", "-m", LARGE, "--run", "r"), ("resume", "--run", "r"), ("answer", "nobody=1"), ("inbox",), ("show", "r"),
        ("runs", "--limit", "1"), ("history", "r", "--limit", "1"), ("history", "nobody"), ("diff", "r", "0"),
        ("doctor",), ("export", "r", "r.run"), ("import", "r.run"), ("fork", "nobody"), ("cancel", "nobody"),
        ("offer", "nobody", "-m", LARGE), ("worker", "--once"), ("prune", "--keep-last", "1"), ("runs", store),
    ]  # fmt: skip
    told = [waits, *(command(*words, *json, "-s", store) for words in calls for json in [(), ("--json",)])]
    monkeypatch.setenv("REHYDRATE_STORE", store)
    told += [command(*words) for words in calls]
    assert [SECRET in done.out + done.err for done in told] == [False] * len(told)
