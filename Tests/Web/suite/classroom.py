"""Virtual micro:bits, a broker, the gateway with its page, and a browser."""

import json
import os
import re
import signal
import urllib.request

from browser import Browser, Page
from journal import Failed, expect
from processes import START, Process, free_port
from simulated import Bus, Microbits

NAMES = {"window": ("Window", "Kitchen"), "door": ("Door", "Kitchen"), "garden": ("Garden", "Outside")}
SERVICES = "temperature,buttons,accelerometer,led,uart"


class Classroom:
    def __init__(self, folder, programs, *options, devices=3, configuration=None, http=None, links=100, new=False, radio=None):
        if radio:
            options += ("--radio", folder, "--radio-scenario", radio)
        self.folder, self.programs = folder, programs
        self.bus = Bus(folder)
        self.microbits = Microbits(
            os.path.join(programs, "microbit-simulator"), self.bus, folder, "--devices", str(devices), *options
        )
        self.port, self.http, self.options, self.links = free_port(), free_port(), http or {}, links
        for password in ("secret", "look"):
            with open(os.path.join(folder, password), "w") as file:
                file.write(password)
        self.radio = {"enabled": True, "ports": [self.microbits.ask("radio")["path"]]} if radio else {}
        self.broker = self.gateway = None
        self.start_broker()
        self.told = "the page is served"
        if new:
            self.told = "open this address in a browser"
            self.write({"gateway": {"id": "classroom"}, "http": {"port": self.http}})
        else:
            self.configure(self.three() if configuration is None else configuration)
        self.start_gateway()
        self.browser = Browser(folder)

    def three(self):
        """Each micro:bit with a name and an area."""
        states = [self.microbits.ask("period", index) for index in range(3)]
        return [
            {
                "match": {"identifier": state["address"]}, "id": id, "name": name, "area": area,
                "properties": ["auto", "led"],
            }
            for state, (id, (name, area)) in zip(states, NAMES.items(), strict=True)
        ]

    def configure(self, devices):
        configuration = {
            "gateway": {"id": "classroom", "area": "Classroom"},
            "mqtt": {"host": "127.0.0.1", "port": self.port},
            "bluetooth": {"links": self.links},
            "http": {"enabled": True, "port": self.http, **self.options},
            "radio": self.radio,
            "devices": devices,
        }
        self.write(configuration)

    def write(self, configuration):
        with open(os.path.join(self.folder, "config.json"), "w") as file:
            json.dump(configuration, file, indent=2)

    def configuration(self):
        with open(os.path.join(self.folder, "config.json")) as file:
            return file.read()

    def start_broker(self):
        path = os.path.join(self.folder, "mosquitto.conf")
        with open(path, "w") as file:
            file.write(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nlog_dest stderr\n")
        self.broker = Process("mosquitto", ["mosquitto", "-c", path], self.folder)
        self.broker.wait_line(" running\n")  # and not "running mosquitto as user"

    def start_gateway(self):
        state = os.path.join(self.folder, "state")
        os.makedirs(state, exist_ok=True)
        program, configuration = (
            os.path.join(self.programs, "microbit-gateway"), os.path.join(self.folder, "config.json")
        )
        environment = {"DBUS_SYSTEM_BUS_ADDRESS": self.bus.address, "STATE_DIRECTORY": state}
        self.gateway = Process("gateway", [program, "run", "--config", configuration], self.folder, environment)
        self.gateway.wait_line(self.told)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.http}/"

    def page(self, fragment="", **options):
        return Page(self.browser, self.address + fragment, **options)

    def get(self, path):
        with urllib.request.urlopen(self.address + path, timeout=START) as answer:
            return answer.read().decode()

    def devices(self):
        return json.loads(self.get("api/devices"))

    def device(self, id):
        for device in self.devices():
            if device["id"] == id:
                return device
        raise Failed(f"the gateway has no device {id}")

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.get("metrics"), re.MULTILINE)[1])

    def writes(self, index, characteristic):
        return self.microbits.ask("writes", index, characteristic=characteristic)["writes"]

    def leave(self):
        """Ends all programs, dependent ones first."""
        complaints = self.browser.complaints()
        self.browser.end()
        for program in (self.gateway, self.broker, self.microbits.process, self.bus.process):
            if program.runs:
                program.end(signal.SIGTERM)
        expect(not complaints, f"the browser complains: {complaints}")
