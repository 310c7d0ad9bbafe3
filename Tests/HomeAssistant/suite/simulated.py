"""A private bus, and the virtual micro:bits on it."""

import json
import os
import socket

from journal import expect
from processes import START, Process

BUS = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/> <allow own="*"/> <allow send_destination="*"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
"""
QUICK = {"connect": 20, "disconnect": 20, "advertise": 20, "scan": 200, "supervision": 50}
"""How long things take in the simulator, in ms."""


class Bus:
    """A private one."""

    def __init__(self, folder):
        path = os.path.join(folder, "bus")
        configuration = os.path.join(folder, "bus.conf")
        with open(configuration, "w") as file:
            file.write(BUS.format(path=path))
        self.address = f"unix:path={path}"
        command = ["dbus-daemon", "--nofork", "--nopidfile", "--print-address", f"--config-file={configuration}"]
        self.process = Process("bus", command, folder)
        self.process.wait_line("unix:")


class Microbits:
    """The simulator and its control socket."""

    def __init__(self, program, bus, folder, *options):
        control = os.path.join(folder, "control")
        quick = [word for name, ms in QUICK.items() for word in (f"--{name}-ms", str(ms))]
        command = [program, "--bus", bus.address, "--control", control, *quick, *options]
        self.process = Process("simulator", command, folder)
        self.process.wait_line("ready")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(START)
        self.socket.connect(control)
        self.control = self.socket.makefile("rw")

    def ask(self, op, i=0, **keys):
        self.control.write(json.dumps({"op": op, "i": i, **keys}) + "\n")
        self.control.flush()
        answer = json.loads(self.control.readline())
        expect("error" not in answer, f"micro:bit {i}: {op}: {answer}")
        return answer

    def period(self, i):
        return self.ask("period", i)["period"]
