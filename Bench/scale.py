"""Starts many gateways at one broker, each with virtual micro:bits and a bus of its own, and measures what grows.

For scripts/scale, which documents the variables.
"""

import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

BIN = Path(
    subprocess.check_output(["swift", "build", "-c", "release", "--show-bin-path"], text=True).strip()
)
COUNTS = [int(n) for n in os.environ.get("SCALE_GATEWAYS", "1 10 20 40").split()]
MICROBITS = int(os.environ.get("SCALE_MICROBITS", "50"))
PERIOD = int(os.environ.get("SCALE_PERIOD", "5000"))
WINDOW = float(os.environ.get("SCALE_SECONDS", "10"))
NODES = int(os.environ.get("SCALE_NODES", "0"))
USER = "house@localhost"  # ejabberd wants a name, and takes any password

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={0}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/> <allow own="*"/> <allow send_destination="*"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
"""


EJABBERD = """
hosts: [localhost]
listen: [{{port: {0}, ip: "127.0.0.1", module: mod_mqtt}}]
auth_method: [anonymous]
anonymous_protocol: login_anon
allow_multiple_connections: true
modules:
  mod_mqtt:
    match_retained_limit: infinity
    max_queue: infinity
    access_publish: {{"#": [allow]}}
    access_subscribe: {{"#": [allow]}}
"""


class Client:
    """An MQTT 3.1.1 client that only subscribes, with QoS 0: each message with its time and the length of its payload."""

    def __init__(self, port, *filters):
        self.messages = []  # (time, topic, length, retained, beginning of the payload)
        self.socket = socket.create_connection(("127.0.0.1", port))
        name = f"scale-{random.randrange(10**9)}".encode()
        self.send(0x10, b"\0\4MQTT\4\xc2\0\0" + self.text(name) + self.text(USER.encode()) + self.text(b"any"))
        for number, each in enumerate(filters, 1):
            self.send(0x82, struct.pack(">H", number) + self.text(each.encode()) + b"\0")
        threading.Thread(target=self.read, daemon=True).start()

    @staticmethod
    def text(data):
        return struct.pack(">H", len(data)) + data

    def send(self, kind, body):
        assert len(body) < 128
        self.socket.sendall(bytes([kind, len(body)]) + body)

    def read(self):
        data = b""
        try:
            while more := self.socket.recv(1 << 18):
                data = self.parse(data + more, time.monotonic())
        except OSError:
            pass

    def parse(self, data, now):
        start = 0
        while True:
            length, shift, at = 0, 0, start + 1
            while at < len(data):
                byte = data[at]
                length |= (byte & 127) << shift
                at, shift = at + 1, shift + 7
                if byte < 128:
                    break
            else:
                return data[start:]
            if at + length > len(data):
                return data[start:]
            if data[start] >> 4 == 3:
                size = struct.unpack_from(">H", data, at)[0]
                topic = data[at + 2:at + 2 + size].decode()
                body = at + 2 + size
                self.messages.append(
                    (now, topic, at + length - body, data[start] & 1, data[body:min(at + length, body + 8)]))
            start = at + length

    def close(self):
        self.socket.close()


class World:
    def __init__(self, folder):
        self.folder = folder
        self.children = []
        self.gateways = []
        self.brokers = []
        first = random.randrange(20000, 30000)
        self.ports = [first + n for n in range(NODES or 1)]
        self.names = first + 100  # of the cluster's nodes

    @property
    def port(self):
        return self.ports[0]

    def start(self, name, *command, environment=None):
        log = open(self.folder / f"{name}.log", "ab")
        child = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            env=os.environ | (environment or {}))
        self.children.append(child)
        return child

    def wait(self, what, limit, condition):
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline:
                sys.exit(f"{what}: not within {limit} s; see {self.folder}")
            time.sleep(0.05)

    def start_mosquitto(self):
        (self.folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_dest stderr\n")
        self.brokers = [self.start("broker", "mosquitto", "-c", str(self.folder / "mosquitto.conf"))]
        self.wait("mosquitto", 10, self.is_listening)

    def start_cluster(self):
        """Nodes of ejabberd, each with its data in a folder of its own."""
        self.start("names", "epmd", "-port", str(self.names), "-address", "127.0.0.1")
        for number, port in enumerate(self.ports, 1):
            folder = self.folder / f"node-{number}"
            folder.mkdir()
            (folder / "ejabberd.yml").write_text(EJABBERD.format(port))
            node = f"node{number}@127.0.0.1"
            environment = {
                "EJABBERD_CONFIG_PATH": f"{folder}/ejabberd.yml", "EJABBERD_LOG_PATH": f"{folder}/ejabberd.log",
                "ERL_LIBS": "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu", "HOME": str(folder),
                "ERL_EPMD_PORT": str(self.names)}
            self.brokers.append(self.start(
                f"broker-{number}", "erl", "+S", "1:1", "+sbwt", "none", "-noinput", "-mnesia", "dir",
                f'"{folder}/mnesia"', "-s", "ejabberd", "-name", node, "-setcookie", "scale", "-kernel",
                "inet_dist_use_interface", "{127,0,0,1}", environment=environment))
            log = self.folder / f"broker-{number}.log"
            self.wait(node, 120, lambda: "Start accepting" in log.read_text())
            if number > 1:
                subprocess.run(
                    ["erl_call", "-c", "scale", "-name", node, "-a", "ejabberd_cluster join ['node1@127.0.0.1']"],
                    env=os.environ | environment, check=True, stdout=subprocess.DEVNULL)

    def is_listening(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            return False

    def start_gateway(self, number):
        folder = self.folder / f"gateway-{number}"
        folder.mkdir()
        bus = f"unix:path={folder}/bus"
        (folder / "bus.conf").write_text(BUS.format(folder / "bus"))
        self.start(f"bus-{number}", "dbus-daemon", "--nofork", "--nopidfile", f"--config-file={folder}/bus.conf")
        self.wait("the bus", 10, (folder / "bus").exists)
        options = ["--devices", MICROBITS, "--period", PERIOD, "--connect-ms", 20, "--disconnect-ms", 20,
                   "--advertise-ms", 20, "--scan-ms", 200, "--bus", bus, "--seed", number]
        for index in range(MICROBITS):
            options += ["--address", f"{index}=C5:A1:00:00:{number:02X}:{index:02X}"]
        self.start(f"simulator-{number}", str(BIN / "microbit-simulator"), *map(str, options))
        self.wait("the simulator", 10, lambda: "ready" in (self.folder / f"simulator-{number}.log").read_text())
        (folder / "password").write_text("any")
        (folder / "password").chmod(0o600)
        brokers = [f"127.0.0.1:{port}" for port in self.ports]
        mqtt = {"hosts": brokers} if len(brokers) > 1 else {"host": "127.0.0.1", "port": self.port}
        mqtt |= {"username": USER, "password_file": "password"}
        (folder / "config.json").write_text(json.dumps(
            {"gateway": {"id": f"g{number}"}, "bluetooth": {"links": 64}, "mqtt": mqtt}))
        self.gateways.append(self.run_gateway(number))

    def run_gateway(self, number):
        folder = self.folder / f"gateway-{number}"
        return self.start(
            f"gateway-{number}", str(BIN / "microbit-gateway"), "run", "--config", str(folder / "config.json"),
            environment={"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/bus", "STATE_DIRECTORY": str(folder / "state"),
                         "RUNTIME_DIRECTORY": str(folder)})

    def end(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGKILL)
        for child in self.children:
            child.wait()


def seconds_of_cpu(process):
    """Of all its threads."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def mebibytes(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def bytes_received(process):
    """By its connection to the broker."""
    text = subprocess.run(["ss", "-tinpH"], capture_output=True, text=True, check=True).stdout
    match = re.search(rf"pid={process.pid},.*\n.*?bytes_received:(\d+)", text)
    return int(match[1]) if match else 0


def group(topic):
    if topic.startswith("homeassistant/"):
        return "discovery"
    if re.fullmatch(r"microbit/[^/]+/(info|availability)|microbit/bridge/.*", topic):
        return "ownership"
    return "values"


def online(messages):
    return {topic for _, topic, _, _, text in messages if topic.endswith("/availability") and text == b"online"}


def steady(world, count):
    """A line of the first table."""
    client = Client(world.port, "#")
    first = world.gateways[0]
    time.sleep(1)
    client.messages.clear()
    begin, cpu, brokers = time.monotonic(), seconds_of_cpu(first), [seconds_of_cpu(each) for each in world.brokers]
    received = bytes_received(first)
    time.sleep(WINDOW)
    span = time.monotonic() - begin
    rate = len([1 for message in client.messages if not message[3]]) / span
    work = [(seconds_of_cpu(each) - before) / span * 100 for each, before in zip(world.brokers, brokers)]
    print(
        f"| {count} | {count * MICROBITS} | {rate:.0f} | {(seconds_of_cpu(first) - cpu) / span * 100:.2f} % "
        f"| {mebibytes(first):.1f} MiB | {(bytes_received(first) - received) / span:.0f} "
        f"| {', '.join(f'{each:.1f} %' for each in work)} "
        f"| {', '.join(f'{mebibytes(each):.1f}' for each in world.brokers)} MiB | {start_again(world)} |",
        flush=True)
    client.close()
    return rate


def start_again(world):
    """The first gateway is started again: when its micro:bits are online, and what it has received by then."""
    world.gateways[0].terminate()
    world.gateways[0].wait()
    client = Client(world.port, "microbit/+/availability")
    time.sleep(1)
    own = {topic for _, topic, _, _, text in client.messages if text == b"offline"}
    client.messages.clear()
    begin = time.monotonic()
    world.gateways[0] = world.run_gateway(1)
    world.wait("the first gateway", 60, lambda: own <= online(client.messages))
    end = max(message[0] for message in client.messages if message[1] in own and message[4] == b"online")
    client.close()
    return f"{end - begin:.1f} s, {bytes_received(world.gateways[0]) / 1024:.0f} KiB"


def retained(world):
    """What the broker retains: by topic the length of topic and payload."""
    client = Client(world.port, "#")
    sizes, before = {}, -1
    while len(sizes) != before:
        before = len(sizes)
        time.sleep(1)
        sizes = {topic: len(topic) + size for _, topic, size, kept, _ in client.messages if kept and size}
    client.close()
    return sizes


def outage(world, kept, rate):
    """The broker is killed, and starts again with nothing retained; or the first node is, and the others remain."""
    gateways = [(gateway, seconds_of_cpu(gateway)) for gateway in world.gateways]
    world.brokers[0].kill()
    world.brokers.pop(0).wait()
    if not NODES:
        time.sleep(1)
        world.start_mosquitto()
    begin, broker = time.monotonic(), seconds_of_cpu(world.brokers[0])
    client = Client(world.ports[-len(world.brokers)], "#")
    missing, last, times, connected, position = set(kept), {}, Counter(), Counter(), 0
    while missing and time.monotonic() < begin + 120:
        time.sleep(0.05)
        new = client.messages[position:]
        position += len(new)
        for now, topic, size, is_kept, text in new:
            if is_kept:
                continue
            times[int(now - begin)] += 1
            if re.fullmatch("microbit/bridge/g[0-9]+/state", topic) and text == b"online":
                connected[int(now - begin)] += 1
            if topic in missing and size:
                missing.discard(topic)
                last[group(topic)] = now - begin
    end = time.monotonic() - begin
    if missing:
        print(f"not published again within 120 s: {len(missing)}, such as {sorted(missing)[:3]}")
    print(f"\nAfter {'the first node was killed' if NODES else 'a restart of the broker, with nothing retained'}: "
          f"{len(kept)} topics are published again in {end:.1f} s")
    for name, seconds in sorted(last.items()):
        print(f"- {name}: {seconds:.1f} s")
    print(f"- gateways that connect in each second: {[connected[n] for n in range(max(+connected, default=0) + 1)]}")
    print(f"- messages in each second: {[times[n] for n in range(int(end) + 1)]}, before: {rate:.0f}")
    work = [seconds_of_cpu(gateway) - before for gateway, before in gateways]
    print(f"- CPU of a gateway: {sum(work) / len(work):.2f} s, of the broker: "
          f"{seconds_of_cpu(world.brokers[0]) - broker:.2f} s")
    client.close()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix="microbit-gateway-scale."))
    world = World(folder)
    try:
        if NODES:
            world.start_cluster()
        else:
            world.start_mosquitto()
        watcher = Client(world.port, "microbit/+/availability", "homeassistant/device/+/config")
        print(f"{MICROBITS} micro:bits for each gateway, a temperature every {PERIOD} ms\n")
        print("| Gateways | micro:bits | messages/s | CPU of the first gateway | its memory | bytes/s it receives "
                  "| CPU of the broker | its memory | the first gateway is started again: online, received |")
        print("|-|-|-|-|-|-|-|-|-|")
        rate = 0
        for count in COUNTS:
            while len(world.gateways) < count:
                world.start_gateway(len(world.gateways) + 1)
            world.wait(
                f"{count * MICROBITS} micro:bits", 240,
                lambda: len(online(watcher.messages)) == count * MICROBITS and len(
                    {topic for _, topic, *_ in watcher.messages if topic.startswith("homeassistant/")}
                ) >= count * (MICROBITS + 1))
            rate = steady(world, count)
        watcher.close()
        kept = retained(world)
        for name in ["discovery", "ownership", "values"]:
            sizes = [size for topic, size in kept.items() if group(topic) == name]
            print(f"{'' if name != 'discovery' else chr(10)}{name}: {len(sizes)} retained topics, {sum(sizes)} bytes, "
                  f"for each micro:bit {sum(sizes) / COUNTS[-1] / MICROBITS:.0f}")
        outage(world, kept, rate)
    finally:
        world.end()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
