"""The programs that a scenario starts and controls in the guest: bluetoothd, micro:bits, an MQTT broker, the gateway."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass

from journal import Failed, Journal, expect

OUT = "/out"
BASE = "microbit"
GATEWAY_ID = "rig"
BROKER_PORT = 1883
TEMPERATURE = "e95d9250-251d-470a-a062-fa1922dfa9a8"
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

START = 60
"""Seconds that a daemon of the guest may take to be ready."""


class Process:
    """A running program; its output goes to a file in the scenario's folder, and line by line to a journal."""

    def __init__(self, name, command, environment=None, stdin=subprocess.DEVNULL):
        self.name = name
        self.output = Journal()
        self.child = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            errors="replace",
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with open(f"{OUT}/{self.name}.log", "a") as log:
            for line in self.child.stdout:
                log.write(line)
                log.flush()
                self.output.append(line.rstrip("\n"))

    def said(self, text):
        return any(text in line for line in self.output.since())

    def wait_line(self, text, within=START):
        return self.output.wait(lambda line: text in f"{line}\n", within, f"'{text}' of {self.name}")

    def write_line(self, line):
        """To its standard input, which must be a pipe."""
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def kill(self, number):
        self.child.send_signal(number)

    def wait_end(self, within):
        """The exit status; negative for a signal."""
        try:
            status = self.child.wait(within)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} did not end within {within} s") from None
        self.reader.join()
        return status


@dataclass
class Message:
    topic: str
    payload: str
    retain: bool
    qos: int
    at: float

    def json(self):
        try:
            return json.loads(self.payload)
        except ValueError:
            raise Failed(f"{self.topic} is no JSON: {self.payload}") from None

    def __str__(self):
        return f"{self.at:9.3f} {self.topic} {self.payload}{' (retained)' if self.retain else ''}"


class Broker:
    """A private mosquitto, and everything that is published on it."""

    def __init__(self):
        configuration = f"{OUT}/mosquitto.conf"
        with open(configuration, "w") as file:
            file.write(
                f"listener {BROKER_PORT} 127.0.0.1\nallow_anonymous true\nuser root\nlog_dest stderr\n"
            )
        self.server = Process("mosquitto", ["mosquitto", "-c", configuration])
        self.server.wait_line(" running\n")  # and not "running mosquitto as user"
        self.messages = Journal()
        # A retained message, whose arrival shows that the subscriber is subscribed.
        self.publish("rig/subscribed", "", "-r", "-m", "yes")
        self.subscriber = subprocess.Popen(
            ["mosquitto_sub", "-V", "mqttv5", "--retain-as-published", "-q", "1", "-t", "#", "-F", "%j"],
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self.read, daemon=True).start()
        self.wait("rig/subscribed", START)

    def read(self):
        with open(f"{OUT}/messages.log", "w") as log:
            for line in self.subscriber.stdout:
                fields = json.loads(line)
                message = Message(
                    fields["topic"],
                    fields["payload"],
                    bool(fields["retain"]),
                    fields["qos"],
                    time.monotonic(),
                )
                log.write(f"{message}\n")
                log.flush()
                self.messages.append(message)

    def publish(self, topic, payload, *options):
        words = options or ("-m", payload)
        subprocess.run(
            ["mosquitto_pub", "-V", "mqttv5", "-q", "1", "-t", topic, *words], check=True, timeout=START
        )

    def wait(self, topic, within, wanted=lambda message: True, after=0, what="message"):
        return self.messages.wait(
            lambda message: message.topic == topic and wanted(message), within, f"{what} on {topic}", after
        )

    def on(self, topic, after=0):
        return [message for message in self.messages.since(after) if message.topic == topic]


class Microbits:
    """The virtual peripherals (see ../microbits), by their control port."""

    def __init__(self, count, strangers=0, services=("temperature",), options=()):
        here = os.path.dirname(os.path.abspath(__file__))
        program = os.path.join(os.path.dirname(here), "microbits")
        self.process = Process(
            "microbits",
            ["python3", program, "--count", str(count), "--strangers", str(strangers)]
            + ["--services", ",".join(services), *options],
        )
        self.process.wait_line("ready")
        self.control = socket.create_connection(("127.0.0.1", 9000)).makefile("rw")

    def ask(self, op, i=0, **more):
        self.control.write(json.dumps(dict(op=op, i=i, **more)) + "\n")
        self.control.flush()
        answer = json.loads(self.control.readline())
        expect("error" not in answer, f"micro:bit {i}: {op} {more}: {answer}")
        return answer

    def all(self):
        return self.ask("list")["microbits"]

    def others(self):
        return self.ask("list")["others"]

    def strangers(self):
        return self.ask("list")["strangers"]

    def until(self, i, within, **state):
        return self.ask("until", i, state=state, within=within)

    def unplug(self):
        """Removes the adapter, as if a USB stick were unplugged, and the micro:bits with it."""
        self.process.kill(signal.SIGKILL)
        self.process.wait_end(START)


class Device:
    """One micro:bit as the gateway shows it in MQTT."""

    def __init__(self, world, index, state, id):
        self.world = world
        self.index = index
        self.name = state["name"]
        self.address = state["address"]
        self.temperature = state.get("temperature")
        self.id = id

    def topic(self, name):
        return f"{BASE}/{self.id}/{name}"

    def wait(self, name, within, wanted=lambda message: True, after=0, what="message"):
        return self.world.broker.wait(self.topic(name), within, wanted, after, what)

    def wait_availability(self, value, within, after=0):
        message = self.wait("availability", within, lambda m: m.payload == value, after, f"'{value}'")
        expect(message.retain, f"{message.topic} {value} was not retained")
        return message

    def wait_readings(self, count, within, after=None):
        """The next `count` readings, as their JSON objects."""
        messages = self.world.broker.messages
        topic = self.topic("readings")
        found = messages.collect(
            lambda message: message.topic == topic,
            count,
            within,
            f"reading on {topic}",
            messages.mark() if after is None else after,
        )
        expect(not any(message.retain for message in found), f"readings of {self.id} were retained")
        return [message.json() for message in found]

    def set_period(self, payload):
        self.world.broker.publish(self.topic("period/set"), payload)

    def reconnect(self):
        """Reconnects by a request, which resets the gateway's back-off; returns when the device is offline."""
        mark = self.world.broker.messages.mark()
        self.world.broker.publish(
            f"{BASE}/bridge/{GATEWAY_ID}/request/device/reconnect", json.dumps({"id": self.id})
        )
        self.wait_availability("offline", START, after=mark)

    def wait_result(self, status, within, after=0):
        message = self.wait(
            "period/result", within, lambda m: m.json()["status"] == status, after, f"'{status}'"
        )
        expect(not message.retain, f"{message.topic} was retained")
        expect(
            RFC3339.fullmatch(message.json()["time"]),
            f"{message.topic} has the time {message.json()['time']}",
        )
        return message.json()

    def wait_period(self, value, within, after=0):
        message = self.wait("period", within, lambda m: m.payload == str(value), after, f"'{value}'")
        expect(message.retain, f"{message.topic} was not retained")


class World:
    def __init__(self, gateway, seed, factor):
        self.gateway_program = gateway
        self.random = random.Random(seed)
        self.factor = factor
        """How much longer the long scenarios last."""
        self.broker = None
        self.bluetoothd = None
        self.bluetoothd_options = []
        self.bus = None
        self.gateway = None
        self.microbits = None

    def start_bluetoothd(self, adapter=True):
        command = ["/usr/libexec/bluetooth/bluetoothd", "--nodetach", "--debug", *self.bluetoothd_options]
        self.bluetoothd = Process("bluetoothd", command)
        self.bluetoothd.wait_line("hci0 registered" if adapter else "initialized")

    def restart_bluetoothd(self, number=signal.SIGTERM):
        self.bluetoothd.kill(number)
        self.bluetoothd.wait_end(START)
        self.start_bluetoothd()

    def start(self, microbits=1, strangers=0, services=("temperature",), options=()):
        """Starts everything except the gateway. `services`: those of the micro:bits (see ../microbits)."""
        self.broker = Broker()
        self.microbits = Microbits(microbits, strangers, services, options)
        self.start_bluetoothd()
        self.bluetoothd.wait_line("hci0 has been enabled")

    def listen_to_bus(self):
        """Records calls and errors on the bus in `bus` from now on."""
        self.bus = Process("bus", ["dbus-monitor", "--system", "type='method_call'", "type='error'"])
        self.bus.wait_line("NameLost")  # the message that it gets when it becomes a monitor

    def gateway_command(self, *arguments, program="microbit-gateway"):
        # The program is from the host and needs its libraries: it runs with the host's file system.
        path = self.gateway_program
        if program != "microbit-gateway":
            path = os.path.join(os.path.dirname(path), program)
        return ["/usr/sbin/chroot", "/hostrw", path, *arguments]

    def gateway_environment(self, bus="unix:path=/run/dbus/system_bus_socket"):
        keep = {"PATH": os.environ["RIG_HOST_PATH"], "HOME": "/root", "LANG": "C.UTF-8"}
        return keep | {"DBUS_SYSTEM_BUS_ADDRESS": bus, "STATE_DIRECTORY": f"{OUT}/state"}

    def start_peripheral(self, *arguments):
        """microbit-peripheral on the second adapter; its input is the process's `child.stdin`."""
        command = self.gateway_command("--adapter", "hci1", *arguments, program="microbit-peripheral")
        peripheral = Process("peripheral", command, self.gateway_environment(), stdin=subprocess.PIPE)
        peripheral.wait_line("serving")
        return peripheral

    def start_gateway(self, devices, **more):
        configuration = {
            "gateway": {"id": GATEWAY_ID},
            "mqtt": {"host": "127.0.0.1", "port": BROKER_PORT, "base_topic": BASE},
            "devices": devices,
            **more,
        }
        with open(f"{OUT}/config.json", "w") as file:
            json.dump(configuration, file, indent=2)
        command = self.gateway_command("run", "--config", f"{OUT}/config.json")
        self.gateway = Process("gateway", command, self.gateway_environment())

    def run_gateway(self, *arguments, within, **environment):
        """A one-shot command: exit status, stdout. Its stderr goes to gateway.log."""
        with open(f"{OUT}/gateway.log", "a") as log:
            try:
                done = subprocess.run(
                    self.gateway_command(*arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self.gateway_environment(**environment),
                    timeout=within,
                )
            except subprocess.TimeoutExpired:
                raise Failed(f"{' '.join(arguments)} did not end within {within} s") from None
        return done.returncode, done.stdout.decode(errors="replace")

    def devices(self, id=lambda index, address: address.replace(":", "").lower()):
        """The micro:bits as MQTT devices; by default with the ids of devices that have none configured."""
        return [
            Device(self, i, state, id(i, state["address"])) for i, state in enumerate(self.microbits.all())
        ]

    def others(self, ids):
        """The other peripherals as MQTT devices with these ids, in the order of `Microbits.others`."""
        count = len(self.microbits.all())
        return [
            Device(self, count + i, state, id) for i, (state, id) in enumerate(zip(self.microbits.others(), ids))
        ]

    def acquire_notify(self):
        """Another program subscribes to the first micro:bit by AcquireNotify, and ends; returns its output."""
        here = os.path.dirname(os.path.abspath(__file__))
        device = "/org/bluez/hci0/dev_" + self.microbits.all()[0]["address"].replace(":", "_")
        program = Process("acquire", ["python3", os.path.join(here, "acquire.py"), device, TEMPERATURE])
        program.wait_end(START)
        return program.output.since()[-1]

    def is_notify_acquired(self):
        """Whether bluetoothd reports NotifyAcquired for any characteristic."""
        known = subprocess.run(
            ["dbus-send", "--system", "--print-reply", "--dest=org.bluez", "/"]
            + ["org.freedesktop.DBus.ObjectManager.GetManagedObjects"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=START,
        )
        return bool(re.search(r'"NotifyAcquired"\s+variant\s+boolean true', known.stdout))

    def set_powered(self, on, adapter="hci0"):
        properties = "org.freedesktop.DBus.Properties.Set"
        value = f"variant:boolean:{'true' if on else 'false'}"
        subprocess.run(
            ["dbus-send", "--system", "--print-reply", "--dest=org.bluez", f"/org/bluez/{adapter}", properties]
            + ["string:org.bluez.Adapter1", "string:Powered", value],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=START,
        )
