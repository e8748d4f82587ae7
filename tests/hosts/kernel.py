"""A program that runs cells in a real Jupyter kernel: JSON of cells on stdin, JSON of what each showed on stdout.

A cell is `{"source": ..., "interrupt_at": ...}`; where a text is given, the kernel is interrupted once it was shown.
It needs jupyter_client and ipykernel, and so runs in an environment of its own.
"""

import json
import sys

from jupyter_client.manager import start_new_kernel

KINDS = ("display_data", "update_display_data", "execute_result", "error")


def main() -> None:
    """Run the cells one after the other in one kernel."""
    manager, client = start_new_kernel(kernel_name="python3", stderr=sys.stderr)
    try:
        json.dump([shown(manager, client, **cell) for cell in json.load(sys.stdin)], sys.stdout)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def shown(manager, client, source, interrupt_at=None):
    """Return kind and content of each thing that a cell showed."""
    outputs = []

    def take(message):
        kind, content = message["msg_type"], message["content"]
        if kind not in KINDS:
            return
        said = content.get("data") or {"text/plain": f"{content.get('ename')}: {content.get('evalue')}"}
        outputs.append([kind, said])
        if interrupt_at is not None and interrupt_at in said.get("text/html", ""):
            manager.interrupt_kernel()

    client.execute_interactive(source, output_hook=take, timeout=60)
    return outputs


main()
