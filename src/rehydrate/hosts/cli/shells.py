"""How completions reach bash, zsh and fish: quoted as each shell reads them back, since ids may hold what it obeys.

click's own classes do the rest. zsh and fish quote what they insert themselves, bash inserts it as it is.
"""

from __future__ import annotations

import os
import re
from typing import ClassVar, Final

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

_BASH: Final = """\
%(complete_func)s() {
    local completion response
    response=$(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1")
    while IFS= read -r completion; do
        case $completion in
            dir,*) COMPREPLY=(); compopt -o dirnames ;;
            file,*) COMPREPLY=(); compopt -o default ;;
            plain,*) COMPREPLY+=("${completion#plain,}") ;;
        esac
    done <<< "$response"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_FISH: Final = """\
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) \
COMP_CWORD=(commandline -t) %(prog_name)s)
    for completion in $response
        set -l parts (string split --max 1 "," -- $completion)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""
#: What bash takes as it is outside of quotes; all else of ASCII has a backslash before it.
_BARE: Final = re.compile(r"[^\w@%+=:,./\x80-\U0010ffff-]", re.ASCII)
_IN_DOUBLE: Final = re.compile(r'[\\"$`]')


class _Bash(BashComplete):
    """Completes the word before the cursor, of which bash replaces what stands behind an open quote or a break."""

    source_template: ClassVar[str] = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the last one, and that one as the command would get it."""
        words = split_arg_string(f"{os.environ['COMP_WORDS']}.")  # the dot stays in the last word, which may be empty
        return words[1:-1], words[-1][:-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return a completion as bash is to insert it."""
        before, quote = _kept(os.environ["COMP_WORDS"], os.environ["COMP_WORDBREAKS"])
        value = item.value.removeprefix("".join(split_arg_string(before)))
        match quote:
            case "'":
                value = value.replace("'", r"'\''")
            case '"':
                # Nothing keeps bash from looking a `!` up in its history but other quotes.
                value = _IN_DOUBLE.sub(r"\\\g<0>", value).replace("!", "\"'!'\"")
            case _:
                value = _BARE.sub(r"\\\g<0>", value)
        return f"{item.type},{value}"


def _kept(line: str, breaks: str) -> tuple[str, str]:
    """Return what bash keeps of the last word of a line, and the quote that is open there."""
    start = end = 0
    quote, escaped = "", False
    for at, letter in enumerate(line):
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif quote:
            if letter == quote:
                quote, end = "", at + 1
        elif letter in "\"'":
            quote, end = letter, at + 1
        elif letter.isspace():
            start = end = at + 1
        elif letter in breaks:
            end = at + 1
    return line[start:end], quote


class _Zsh(ZshComplete):
    """What has a description loses its backslashes, and ends at a colon that has none before it."""

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return a completion as the script of zsh reads it, whether click knows of the colons (from 8.3 on) or not."""
        if not item.help:
            return super().format_completion(item)
        value = item.value.replace("\\", r"\\").replace(":", r"\:")
        return f"{item.type}\n{value}\n{item.help}"


class _Fish(FishComplete):
    """An id may hold the comma at which click's own script takes a line apart."""

    source_template: ClassVar[str] = _FISH


def add_shells() -> None:
    """Let completion use these."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell)
