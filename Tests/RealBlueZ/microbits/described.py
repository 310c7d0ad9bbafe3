"""Peripherals other than micro:bits: described by a scenario, or a weather station."""

import asyncio
import struct

from bumble.att import ATT_Error, ATT_Read_Request, ATT_Write_Request
from bumble.core import UUID, AdvertisingData
from bumble.gatt import Service

from peripherals import Peripheral
from radio import later, log
from services import INVALID_LENGTH, characteristic, number

UUID_LISTS = {
    2: AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS,
    16: AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS,
}


class Described(Peripheral):
    """A peripheral that stores what is written, and notifies the values that the scenario sets. Its description:

    {"name": "Heart", "advertises": ["180d"], "services": [{"uuid": "180d", "later": false, "characteristics": [
      {"uuid": "2a38", "access": ["read", "notify", "indicate", "write", "command"], "value": "01", "length": 1}]}]}

    `advertises`: one UUID at most. `later`: not served until the operation "offer". `value`: in hexadecimal digits.
    `length`: of a write; writes of another length are refused.
    """

    def __init__(self, index, air, adapter, description):
        super().__init__(index, description["name"], "E7:%02X:00:00:5A:FE" % index, air, adapter)
        self.description = description
        self.values = {}
        self.writes = {}
        self.characteristics = {}
        self.read_errors = {}
        self.ends_links = False

    def refuse_reads(self, uuid, code):
        """All reads of the characteristic are answered with an ATT error; 0: no longer."""
        self.read_errors[uuid] = code

    def end_links_after_writes(self):
        """It ends the link 60 ms after each write that it has answered, as one that restarts."""
        self.ends_links = True

    def on_request(self, link, request):
        if isinstance(request, ATT_Read_Request):
            for uuid, code in self.read_errors.items():
                if code and request.attribute_handle == self.characteristics[uuid].handle:
                    return self.refuse(link, request, code)
        super().on_request(link, request)
        values = [c.handle for c in self.characteristics.values()]
        if self.ends_links and isinstance(request, ATT_Write_Request) and request.attribute_handle in values:
            later(0.06, self.air.cut, self.address, 0x13)

    def advertised(self):
        uuids = [bytes(UUID(uuid)) for uuid in self.description.get("advertises", [])]
        return [(UUID_LISTS[len(uuid)], uuid) for uuid in uuids]

    def services(self):
        return [self.service(s) for s in self.description["services"] if not s.get("later")]

    def service(self, description):
        characteristics = [self.characteristic(c) for c in description["characteristics"]]
        return Service(UUID(description["uuid"]), characteristics)

    def characteristic(self, description):
        uuid = description["uuid"]
        access = description["access"]
        self.values[uuid] = bytes.fromhex(description.get("value", ""))
        self.writes[uuid] = []

        def write(value):
            if len(value) != description.get("length", len(value)):
                raise ATT_Error(INVALID_LENGTH)
            self.values[uuid] = value
            self.writes[uuid].append(value.hex())
            self.notice()

        self.characteristics[uuid] = characteristic(
            UUID(uuid),
            read=(lambda: self.values[uuid]) if "read" in access else None,
            write=write if "write" in access or "command" in access else None,
            notify="notify" in access,
            indicate="indicate" in access,
            command="command" in access,
        )
        return self.characteristics[uuid]

    async def set_value(self, uuid, value):
        self.values[uuid] = bytes.fromhex(value)
        await self.send(self.characteristics[uuid], self.values[uuid])

    async def offer(self):
        """Adds the services marked `later`, and indicates Service Changed."""
        for description in self.description["services"]:
            if description.get("later"):
                self.device.add_service(self.service(description))
        await self.send(self.generic_attribute.service_changed_characteristic, struct.pack("<2H", 1, 0xFFFF))

    def state(self):
        return super().state() | dict(writes=self.writes)


class WeatherStation(Peripheral):
    """It measures once per interval, which it rounds up to a multiple of 10 s, and indicates each gust.

    The measurement: flags, temperature in 0.01 °C, and if their bits are set, wind in 0.1 m/s (bit 0) and rain in
    mm (bit 1); then the state of its battery.
    """

    SERVICE = "7D0E{:04X}-52C1-4E4B-8D3A-0C6B3E1F9A20"
    STEP = 10

    def __init__(self, index, air, adapter):
        super().__init__(index, "Meteo 7", "E7:%02X:00:00:5A:FE" % index, air, adapter)
        self.temperature = -1.25
        self.wind = None
        self.rain = None
        self.battery = 1
        self.interval = 60
        self.measuring = None

    def services(self):
        self.data = characteristic(self.uuid(2), self.measurement, notify=True)
        interval = characteristic(
            self.uuid(3), lambda: struct.pack("<H", self.interval), number(2, self.write_interval)
        )
        self.gust = characteristic(self.uuid(4), indicate=True)
        return [Service(self.uuid(1), [self.data, interval, self.gust])]

    def uuid(self, number):
        return self.SERVICE.format(number)

    def measurement(self):
        flags = (self.wind is not None) | (self.rain is not None) << 1
        value = struct.pack("<Bh", flags, round(self.temperature * 100))
        if self.wind is not None:
            value += struct.pack("<H", round(self.wind * 10))
        if self.rain is not None:
            value += struct.pack("<B", self.rain)
        return value + struct.pack("<B", self.battery)

    def write_interval(self, value):
        self.interval = max(self.STEP, -(-value // self.STEP) * self.STEP)
        log(self.name, "interval", self.interval, "s")
        self.restart()
        self.notice()

    async def start(self):
        await super().start()
        self.restart()

    def restart(self):
        if self.measuring:
            self.measuring.cancel()
        self.measuring = asyncio.create_task(self.measure())

    async def measure(self):
        while True:
            await asyncio.sleep(self.interval)
            await self.send(self.data, self.measurement())

    def set_weather(self, temperature, wind=None, rain=None, battery=1):
        self.temperature, self.wind, self.rain, self.battery = temperature, wind, rain, battery

    async def send_gust(self, speed):
        await self.send(self.gust, struct.pack("<H", round(speed * 10)))

    def state(self):
        return super().state() | dict(interval=self.interval)
