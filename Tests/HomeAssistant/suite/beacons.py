"""A gateway in range of devices that advertise BTHome, which are only heard."""

import json
import os
import tempfile

from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from house import Room
from simulated import Bus, Microbits

ID = "beacons"
BTHOME = "fcd2"


class Beacon(Room):
    def __init__(self, beacons, index, name, address, key=None):
        self.house = beacons
        self.index = index
        self.address, self.key = address, key
        self.id, self.name = name.lower().replace(" ", "-"), name
        self.configuration = {"match": {"identifier": address}, "profile": "bthome", "id": self.id, "name": name}
        if key:
            self.configuration["key"] = key
        self.packet = 0

    def frame(self, objects, isTrigger=False):
        """The next one, with a packet id or encrypted; objects in hexadecimal digits."""
        self.packet += 1
        if not self.key:
            return f"{'44' if isTrigger else '40'}00{self.packet:02x}{objects}"
        information, counter = bytes([0x41]), self.packet.to_bytes(4, "little")
        nonce = bytes.fromhex(self.address.replace(":", "")) + bytes.fromhex(BTHOME)[::-1] + information + counter
        sealed = AESCCM(bytes.fromhex(self.key), tag_length=4).encrypt(nonce, bytes.fromhex(objects), None)
        return (information + sealed[:-4] + counter + sealed[-4:]).hex()

    def advertise(self, objects, isTrigger=False):
        self.house.microbits.ask("advertise", self.index, service=BTHOME, hex=self.frame(objects, isTrigger))


class Beacons:
    def __init__(self, house, *kinds):
        """`kinds`: of each its name, its address, its key, and the objects that it advertises first."""
        self.house = house
        self.home_assistant = house.home_assistant
        self.folder = tempfile.mkdtemp(prefix=f"{ID}.", dir=house.folder)
        self.all, files = [], []
        for index, (name, address, key, objects) in enumerate(kinds):
            beacon = Beacon(self, index, name, address, key)
            self.all.append(beacon)
            files.append(os.path.join(self.folder, f"{index}.json"))
            with open(files[-1], "w") as file:
                json.dump({"address": address, "service_data": {BTHOME: beacon.frame(objects)}}, file)
        self.bus = Bus(self.folder)
        self.microbits = Microbits(
            house.program("microbit-simulator"), self.bus, self.folder, "--devices", "0",
            *(word for path in files for word in ("--peripheral", path)),
        )
        self.configure()
        self.gateway = house.run_gateway(self.folder, self.bus)

    @property
    def device(self):
        return self.home_assistant.devices().get(f"Micro:bit gateway {ID}")

    def configure(self, discovery=True):
        entries = [beacon.configuration for beacon in self.all]
        self.house.write_configuration(self.folder, {"id": ID, "area": "Cellar"}, entries, discovery)

    def leave(self):
        for process in (self.gateway, self.microbits.process, self.bus.process):
            process.end()
