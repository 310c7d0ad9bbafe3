"""What both sessions share: steps, the control socket of the simulator, and what is waited for."""

import json
import queue
import socket
import sys

# For what must come, in s: a busy machine may take its time.
PATIENCE = 60
DATA = {
    "button": "e95dda90-251d-470a-a062-fa1922dfa9a8",
    "pins": "e95d8d00-251d-470a-a062-fa1922dfa9a8",
    "uart": "6e400002-b5a3-f393-e0a9-e50e24dcca9e",
    "acceleration": "e95dca4b-251d-470a-a062-fa1922dfa9a8",
}


def check(what, condition, *shown):
    if not condition:
        sys.exit(f"not so: {what} {shown if shown else ''}")
    print(f"ok: {what}", flush=True)


def happens(name, hex):
    """Something happens at the micro:bit: a characteristic has another value."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(sys.argv[2])
        command = {"op": "value", "i": 0, "characteristic": DATA[name], "hex": hex}
        control.sendall(json.dumps(command).encode() + b"\n")
        answer = json.loads(control.makefile().readline())
        if "error" in answer:
            sys.exit(f"{command}: {answer}")


class Heard(queue.Queue):
    """The arguments of a callback's calls."""

    def __call__(self, *values):
        self.put(values[0] if len(values) == 1 else values)

    def next(self):
        return self.get(timeout=PATIENCE)
