"""A second gateway on the same broker, with its own adapter and virtual micro:bit."""

import os
import sqlite3
from contextlib import closing

from house import SERVICES
from simulated import Bus, Microbits

ID = "annex"
AREA = "Garden"


class Annex:
    def __init__(self, house, room):
        """`room`: the room whose micro:bit this gateway knows too; it is not in range here yet."""
        self.house = house
        self.folder = os.path.join(house.folder, ID)
        os.makedirs(self.folder)
        self.bus = Bus(self.folder)
        self.microbits = Microbits(
            house.program("microbit-simulator"),
            self.bus,
            self.folder,
            *("--devices", "1", "--services", SERVICES, "--address", f"0={room.address}"),
        )
        self.microbits.ask("vanish")
        self.entries = [room.configuration]
        self.configure()
        self.gateway = None

    name = f"Micro:bit gateway {ID}"

    @property
    def device(self):
        return self.house.home_assistant.devices().get(self.name)

    def configure(self, discovery=True):
        self.house.write_configuration(self.folder, {"id": ID, "area": AREA}, self.entries, discovery)

    def start_gateway(self):
        self.gateway = self.house.run_gateway(self.folder, self.bus)

    def has_stored(self, key):
        """Whether a record is in the gateway's state database, which a gateway that is killed has from then on."""
        path = os.path.join(self.folder, "state", f"{ID}.db")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return bool(database.execute("SELECT 1 FROM record WHERE key = ?", (key,)).fetchall())

    def leave(self):
        for process in (self.gateway, self.microbits.process, self.bus.process):
            if process:
                process.end()
