"""The programs that a scenario runs: each with its own addresses, each ended by its pid."""

import os
import signal
import socket
import subprocess
import threading

from journal import Failed, Journal

START = 60
"""Seconds that a program may take to be ready."""
END = 30
"""Seconds that it may take to end in order."""


class Process:
    """A running program; its output goes to a file in the folder, and line by line to a journal."""

    def __init__(self, name, command, folder, environment=None):
        self.name = name
        self.output = Journal()
        self.path = os.path.join(folder, f"{name}.log")
        self.child = subprocess.Popen(
            # If this suite is killed, the kernel ends its programs.
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | (environment or {}),
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches only the suite, which ends them in order
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with open(self.path, "a") as log:
            for line in self.child.stdout:
                log.write(line)
                log.flush()
                self.output.append(line.rstrip("\n"))
        self.output.append("")  # wakes waiters, so that they see that it has ended

    def wait_line(self, text, within=START):
        def found(line):
            return text in f"{line}\n" or self.child.poll() is not None

        self.output.wait(found, within, f"'{text}' of {self.name}")
        if self.child.poll() is not None:
            raise Failed(f"{self.name} ended by itself, with status {self.child.returncode}: see {self.path}")

    @property
    def runs(self):
        return self.child.poll() is None

    def end(self, number=signal.SIGTERM, within=END):
        """Ends it with a signal; returns its exit status, negative for a signal."""
        if self.runs:
            self.child.send_signal(number)
        try:
            status = self.child.wait(within)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise Failed(f"{self.name} did not end within {within} s") from None
        self.reader.join()
        return status


def free_port():
    """A free port of the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
