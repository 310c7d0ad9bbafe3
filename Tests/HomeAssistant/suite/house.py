"""An installation with a micro:bit in each of three rooms: virtual micro:bits, gateway, broker, Home Assistant."""

import json
import os
import signal
import sqlite3

from broker import Broker
from home_assistant import HomeAssistant
from journal import expect
from processes import Process
from simulated import Bus, Microbits

BASE = "microbit"
GATEWAY_ID = "house"
GATEWAY_AREA = "Living Room"
PREFIX = "homeassistant"

SERVICE = "e95d6100-251d-470a-a062-fa1922dfa9a8"
CLASSROOM = {
    "requires": [SERVICE],
    "properties": {
        "temperature": {
            "service": SERVICE,
            "characteristic": "e95d9250-251d-470a-a062-fa1922dfa9a8",
            "access": ["read", "notify"],
            "type": "int8",
        },
        "period": {
            "service": SERVICE,
            "characteristic": "e95d1b25-251d-470a-a062-fa1922dfa9a8",
            "access": ["read", "write"],
            "type": "uint16",
            "home_assistant": {"platform": "select", "name": "Period", "options": {"1 s": 1000, "2 s": 2000}},
        },
    },
}
"""A profile that shows the period as a choice."""

SERVICES = "temperature,buttons,led,pins,uart"
"""Of each micro:bit."""

CONNECT = 60
"""Seconds from the start of anything until all of it shows in Home Assistant."""
MOMENT = 20
"""Seconds that anything may take that takes a moment, on a machine that has much else to do."""

class Room:
    """A micro:bit as configured and shown; without name and area, it is known by its Bluetooth name only."""

    def __init__(self, house, index, name=None, area=None):
        state = house.microbits.ask("period", index)
        self.house = house
        self.index = index
        self.address = state["address"]
        self.id = name.lower() if name else self.address.replace(":", "").lower()
        self.name = name or state["name"]
        self.area = area or GATEWAY_AREA
        self.is_configured = name is not None
        self.configuration = {"match": {"identifier": self.address}, "id": self.id, "name": name, "area": area}

    def topic(self, name):
        return f"{BASE}/{self.id}/{name}"

    @property
    def object_id(self):
        """Its identifier in Home Assistant."""
        return f"ble_{self.address.replace(':', '').lower()}"

    @property
    def discovery_topic(self):
        return f"{PREFIX}/device/{self.object_id}/config"

    @property
    def device(self):
        """Its page in Home Assistant; None without one."""
        return self.house.home_assistant.devices().get(self.name)

    @property
    def entities(self):
        device = self.device
        return self.house.home_assistant.entities(device) if device else {}

    def entity(self, name):
        entity = self.entities.get(name)
        expect(entity, f"{self.name} has no entity '{name}'")
        return entity

    def shows(self, name):
        """The state of an entity; None without one."""
        return state(self.entities.get(name))

    def until(self, name, wanted, within=MOMENT):
        """Waits until an entity has the wanted state, or meets a condition."""
        met = wanted if callable(wanted) else lambda value: value == wanted
        self.house.home_assistant.until(
            f"{name} of {self.name} is {getattr(wanted, '__name__', wanted)}",
            lambda: met(self.shows(name)),
            within,
        )

    def until_state(self, entity_id, met, within=MOMENT):
        """Waits until the state of an entity, given by its id, is as wanted."""
        home_assistant = self.house.home_assistant
        home_assistant.until(f"the state of {entity_id}", lambda: met(home_assistant.state_of(entity_id)), within)

    def until_via(self, gateway):
        """Waits until it is "Connected via" the device that `gateway()` returns."""
        self.house.home_assistant.until(
            f"{self.name} is via {gateway()['name']}",
            lambda: self.device["via_device_id"] == gateway()["id"],
            MOMENT,
        )

    def until_online(self, within=CONNECT):
        self.until("Temperature", is_number, within)
        self.until("Connectivity", "on", within)


class House:
    def __init__(self, folder, programs):
        self.folder = folder
        self.programs = programs
        self.bus = self.microbits = self.broker = self.gateway = self.home_assistant = None
        self.rooms = []

    def start(self):
        self.bus = Bus(self.folder)
        self.microbits = Microbits(
            self.program("microbit-simulator"), self.bus, self.folder, "--devices", "3",
            "--services", SERVICES,
        )
        self.rooms = [
            Room(self, 0, "Pantry", "Kitchen"),  # an area that Home Assistant has
            Room(self, 1, "Loft", "Attic"),  # one that it does not have
            Room(self, 2),  # in the gateway's
        ]
        self.broker = Broker(self.folder)
        self.configure()
        self.start_gateway()
        self.home_assistant = HomeAssistant(self.folder)
        self.home_assistant.start()
        self.home_assistant.add_mqtt(self.broker.port)
        self.wait_birth(0)
        for room in self.rooms:
            room.until_online()

    def program(self, name):
        return os.path.join(self.programs, name)

    def configure(self, discovery=True, but=None):
        """`but` is a room whose micro:bit the gateway does not get."""
        devices = [room.configuration for room in self.rooms if room.is_configured and room is not but]
        devices += [{"match": {"name_prefix": room.name}} for room in self.rooms if not room.is_configured]
        self.write_configuration(self.folder, {"id": GATEWAY_ID, "area": GATEWAY_AREA}, devices, discovery)

    def write_configuration(self, folder, gateway, devices, discovery):
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(
                {
                    "gateway": gateway,
                    "mqtt": {"host": "127.0.0.1", "port": self.broker.port, "base_topic": BASE},
                    "home_assistant": {"discovery": discovery, "prefix": PREFIX},
                    "profiles": {"classroom": CLASSROOM},
                    "devices": devices,
                },
                file,
                indent=2,
            )

    def start_gateway(self):
        self.gateway = self.run_gateway(self.folder, self.bus)

    def run_gateway(self, folder, bus):
        state = os.path.join(folder, "state")
        os.makedirs(state, exist_ok=True)
        return Process(
            "gateway",
            [self.program("microbit-gateway"), "run", "--config", os.path.join(folder, "config.json")],
            folder,
            {"DBUS_SYSTEM_BUS_ADDRESS": bus.address, "STATE_DIRECTORY": state},
        )

    def doctor_state(self, key, change):
        """Changes a record of the gateway's state database, while the gateway is stopped."""
        with sqlite3.connect(os.path.join(self.folder, "state", f"{GATEWAY_ID}.db")) as database:
            ((text,),) = database.execute("SELECT value FROM record WHERE key = ?", (key,))
            record = json.loads(text)
            change(record)
            database.execute("UPDATE record SET value = ? WHERE key = ?", (json.dumps(record), key))
        database.close()

    def wait_birth(self, after):
        """Waits until Home Assistant has published `online`: by then it has subscribed to everything."""
        self.broker.wait(f"{PREFIX}/status", CONNECT, lambda message: message.payload == "online", after, "birth")

    # The gateway in Home Assistant

    gateway_name = f"Micro:bit gateway {GATEWAY_ID}"
    gateway_discovery_topic = f"{PREFIX}/device/ble_gateway_{GATEWAY_ID}/config"

    @property
    def gateway_device(self):
        return self.home_assistant.devices().get(self.gateway_name)

    @property
    def gateway_entities(self):
        device = self.gateway_device
        return self.home_assistant.entities(device) if device else {}

    def gateway_entity(self, name):
        entity = self.gateway_entities.get(name)
        expect(entity, f"the gateway has no entity '{name}'")
        return entity

    def gateway_until(self, name, wanted, within=MOMENT):
        met = wanted if callable(wanted) else lambda value: value == wanted
        self.home_assistant.until(
            f"{name} of the gateway is {getattr(wanted, '__name__', wanted)}",
            lambda: met(state(self.gateway_entities.get(name))),
            within,
        )

    def request(self, verb, gateway=GATEWAY_ID, **keys):
        """The data of the gateway's answer to a bridge request."""
        mark = self.broker.messages.mark()
        bridge = f"{BASE}/bridge/{gateway}"
        self.broker.publish(f"{bridge}/request/{verb}", {"transaction": f"t{mark}", **keys})
        answer = self.broker.wait(
            f"{bridge}/response/{verb}",
            MOMENT,
            lambda message: message.json().get("transaction") == f"t{mark}",
            mark,
            "answer",
        ).json()
        expect(answer["status"] == "ok", f"{verb} {keys}: {answer}")
        return answer.get("data")

    # The end

    def leave(self):
        """Ends all programs, dependent ones first."""
        failures = []
        ends = [
            self.home_assistant and self.home_assistant.stop,
            self.gateway and self.gateway.end,
            self.broker and self.broker.stop,
            self.microbits and self.microbits.process.end,
            self.bus and self.bus.process.end,
        ]
        for end in filter(None, ends):
            try:
                end()
            except Exception as failure:  # the others have to end nevertheless
                failures.append(str(failure))
        return failures

    def kill_gateway(self):
        self.gateway.end(signal.SIGKILL)


def state(entity):
    """What an entity shows; None without an entity or a state."""
    return entity["state"]["state"] if entity and entity["state"] else None


def is_number(text):
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def is_known(text):
    return text not in (None, "unknown", "unavailable")
