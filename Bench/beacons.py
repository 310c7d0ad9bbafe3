"""Advertisements of many senders of BTHome, by the control socket of the simulator, and what they cost the gateway.

    beacons.py peripherals FOLDER SENDERS
    beacons.py measure CONTROL PORT PID SENDERS COUNT RATE

`peripherals` writes a file for each sender, for microbit-simulator --peripheral, and prints their paths. `measure` lets the
senders advertise in turn, COUNT times in all, RATE a second, each time with another packet id and temperature; it counts the
readings that the gateway (PID) publishes at the broker, and prints a line for Bench/table.py.
"""

import json
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 10  # s, between two that come


def frame(number):
    """Service data: a packet id, battery, temperature and humidity."""
    return bytes((0x40, 0x00, number % 256, 0x01, 90, 0x02, *(1500 + number % 1000).to_bytes(2, "little"),
                  0x03, *(5000).to_bytes(2, "little"))).hex()


def peripherals(folder, senders):
    for number in range(senders):
        path = Path(folder, f"{number}.json")
        address = "E6:7C:00:00:%02X:%02X" % divmod(number, 256)
        path.write_text(json.dumps({"address": address, "service_data": {"fcd2": frame(0)}}))
        print(path)


class Readings:
    """The temperatures on all topics …/readings."""

    def __init__(self, port):
        self.program = subprocess.Popen(
            ["stdbuf", "-oL", "mosquitto_sub", "-h", "127.0.0.1", "-p", port, "-q", "1", "-t", "microbit/+/readings"],
            stdout=subprocess.PIPE)
        self.arrived = 0
        self.last = time.monotonic()

    def take(self):
        """Counts what has come, without waiting for more than 10 ms."""
        while select.select([self.program.stdout], [], [], 0.01)[0]:
            data = self.program.stdout.read1(1 << 20)
            if not data:
                sys.exit("the subscriber has ended")
            count = data.count(b'"property":"temperature"')
            if count:
                self.arrived, self.last = self.arrived + count, time.monotonic()


def cpu(pid):
    """Of all threads, in s."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def private(pid):
    """In KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def measure(control, port, pid, senders, count, rate):
    readings = Readings(port)
    with socket.socket(socket.AF_UNIX) as air:
        air.connect(control)
        answers = air.makefile()

        def advertise(number):
            command = {"op": "advertise", "i": number % senders, "service": "fcd2", "hex": frame(number // senders + 1)}
            air.sendall(json.dumps(command).encode() + b"\n")
            answer = json.loads(answers.readline())
            if "error" in answer:
                sys.exit(f"{command}: {answer}")

        def settle(wanted, patience):
            """Until as many have come, or nothing more comes."""
            readings.last = time.monotonic()
            while readings.arrived < wanted and time.monotonic() < readings.last + patience:
                readings.take()

        # The first of each makes it a device, and announces it.
        first = 0
        while readings.arrived < 2 * senders and first < 10 * senders:
            for number in range(senders):
                advertise(first + number)
            first += senders
            settle(readings.arrived + senders, 2)
        time.sleep(5)
        readings.take()
        readings.arrived = 0
        before, begin = cpu(pid), time.monotonic()
        for number in range(count):
            advertise(first + number)
            if number % 50 == 49:
                readings.take()
                time.sleep(max(0, begin + (number + 1) / rate - time.monotonic()))
        seconds = time.monotonic() - begin
        settle(count, PATIENCE)
        used = cpu(pid) - before
    readings.program.terminate()
    print(f"beacons cpu_s={used:.3f} sent={count} arrived={readings.arrived} seconds={seconds:.1f} private={private(pid)}")


if sys.argv[1] == "peripherals":
    peripherals(sys.argv[2], int(sys.argv[3]))
else:
    measure(sys.argv[2], sys.argv[3], int(sys.argv[4]), *map(int, sys.argv[5:]))
