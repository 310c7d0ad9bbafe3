"""A record of events, in order, that a scenario can wait for."""

import threading
import time


class Failed(Exception):
    """A scenario's expectation was not met."""


class Journal:
    """A growing list: one thread appends entries, and a scenario waits for them."""

    def __init__(self):
        self.entries = []
        self.grown = threading.Condition()

    def append(self, entry):
        with self.grown:
            self.entries.append(entry)
            self.grown.notify_all()

    def mark(self):
        """The position after all entries so far, for `after`."""
        with self.grown:
            return len(self.entries)

    def since(self, mark=0):
        with self.grown:
            return self.entries[mark:]

    def wait(self, wanted, within, what, after=0):
        """The first entry from `after` on for which `wanted` is true; Failed after `within` seconds."""
        return self.collect(wanted, 1, within, what, after)[0]

    def collect(self, wanted, count, within, what, after=0):
        """The first `count` such entries."""
        deadline = time.monotonic() + within
        position = after
        found = []
        with self.grown:
            while True:
                while position < len(self.entries):
                    if wanted(self.entries[position]):
                        found.append(self.entries[position])
                        if len(found) == count:
                            return found
                    position += 1
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    missing = "no" if count == 1 else f"{len(found)} of {count} times"
                    raise Failed(f"within {within} s there was {missing} {what}")
                self.grown.wait(remaining)


def expect(condition, complaint):
    if not condition:
        raise Failed(complaint)
