"""Gateways of a school, with an adapter and five virtual micro:bits each, which are switched off at first."""

import json
import os
import subprocess

from house import BASE, Room
from journal import expect
from simulated import Bus, Microbits

NAMES = ["tavop", "vipet", "gozap", "zepiv", "topug"]
SERVICES = {
    "temperature": "e95d6100-251d-470a-a062-fa1922dfa9a8",
    "buttons": "e95d9882-251d-470a-a062-fa1922dfa9a8",
    "accelerometer": "e95d0753-251d-470a-a062-fa1922dfa9a8",
    "led": "e95dd91d-251d-470a-a062-fa1922dfa9a8",
    "uart": "6e400001-b5a3-f393-e0a9-e50e24dcca9e",
}


class School:
    """One gateway. Those of a school have the same micro:bits, each in range of one gateway at a time."""

    def __init__(self, house, name, *known):
        """`known`: the indices of the micro:bits that init is told."""
        self.house = house
        self.name = name
        self.home_assistant = house.home_assistant
        self.folder = os.path.join(house.folder, name)
        os.makedirs(self.folder)
        self.bus = Bus(self.folder)
        names = [word for index, name in enumerate(NAMES) for word in (
            "--name", f"{index}=BBC micro:bit [{name}]", "--address", f"{index}=E1:5A:00:00:00:0{index}")]
        self.microbits = Microbits(
            house.program("microbit-simulator"), self.bus, self.folder,
            *("--devices", str(len(NAMES)), "--services", ",".join(SERVICES), *names),
        )
        self.rooms = [Room(self, index) for index in range(len(NAMES))]
        for index, room in enumerate(self.rooms):
            self.microbits.ask("vanish", index)
            if index not in known:
                room.id = NAMES[index]  # who joins has the five letters
        self.set_up([self.rooms[index].address for index in known])
        self.gateway = house.run_gateway(self.folder, self.bus)

    def set_up(self, addresses):
        """By init. A computer of its own would have a host name of its own, which is the gateway's id."""
        path = os.path.join(self.folder, "config.json")
        words = ["init", "--yes", "--config", path, "--broker", "127.0.0.1"]
        words += [word for address in addresses for word in ("--device", address)]
        done = subprocess.run(
            [self.house.program("microbit-gateway"), *words, "--port", str(self.house.broker.port)],
            env=os.environ | {"DBUS_SYSTEM_BUS_ADDRESS": self.bus.address},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        expect(done.returncode == 0, f"init: {done.stdout}{done.stderr}")
        with open(path) as file:
            configuration = json.load(file)
        configuration["gateway"] = {"id": self.name}
        with open(path, "w") as file:
            json.dump(configuration, file)

    @property
    def device(self):
        return self.home_assistant.devices().get(f"Micro:bit gateway {self.name}")

    def permit_join(self, before, after):
        """Switches it from `off` to `on`, or back."""
        switch = self.home_assistant.entities(self.device)["Permit join"]["entity_id"]
        self.house.rooms[0].until_state(switch, lambda state: state == before)
        self.home_assistant.call("switch", f"turn_{after}", switch)
        self.house.rooms[0].until_state(switch, lambda state: state == after)

    def flash(self, index, services):
        """Its program has these services from now on."""
        for name, service in SERVICES.items():
            self.microbits.ask("serve", index, service=service, on=name in services)

    def send(self, index, *lines):
        for line in lines:
            self.microbits.ask(
                "value", index, characteristic="6e400002-b5a3-f393-e0a9-e50e24dcca9e", hex=f"{line}\n".encode().hex())

    def written(self, index, characteristic):
        """What was last written there, as text."""
        writes = self.microbits.ask("writes", index, characteristic=characteristic)["writes"]
        return bytes.fromhex(writes[-1]).decode() if writes else None

    def retained(self, index):
        """The names of its topics at the broker."""
        begin = f"{BASE}/{self.rooms[index].id}/"
        return {topic.removeprefix(begin) for topic in self.house.broker.retained() if topic.startswith(begin)}

    def leave(self):
        for process in (self.gateway, self.microbits.process, self.bus.process):
            process.end()
