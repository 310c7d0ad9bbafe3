"""The micro:bit's services beside its temperature, as the firmware of a V2 has them."""

import asyncio
import struct

from bumble.att import ATT_Error
from bumble.gatt import Characteristic, CharacteristicValue, Service

from radio import log

READ_NOT_PERMITTED = 0x02
WRITE_NOT_PERMITTED = 0x03
INVALID_LENGTH = 0x0D


def microbit_uuid(number):
    return "E95D%s-251D-470A-A062-FA1922DFA9A8" % number


def microbit_characteristic(number, read=None, write=None, notify=False):
    """One of the micro:bit's own. `read` returns its bytes, `write` takes them; without one it is refused."""

    def refuse_read(_):
        raise ATT_Error(READ_NOT_PERMITTED)

    def refuse_write(*_):
        raise ATT_Error(WRITE_NOT_PERMITTED)

    properties = Characteristic.Properties(0)
    permissions = Characteristic.Permissions(0)
    if read:
        properties |= Characteristic.Properties.READ
        permissions |= Characteristic.READABLE
    if write:
        properties |= Characteristic.Properties.WRITE
        permissions |= Characteristic.WRITEABLE
    if notify:
        properties |= Characteristic.Properties.NOTIFY
    value = CharacteristicValue(
        read=(lambda _: read()) if read else refuse_read,
        write=(lambda _, value: write(value)) if write else refuse_write,
    )
    return Characteristic(microbit_uuid(number), properties, permissions, value)


def uint16(value):
    if len(value) != 2:
        raise ATT_Error(INVALID_LENGTH)
    return struct.unpack("<H", value)[0]


class Buttons:
    """0: released, 1: pressed, 2: held for 1.5 s; notified on change."""

    def __init__(self, microbit):
        self.microbit = microbit
        self.values = {"a": 0, "b": 0}
        self.characteristics = {
            "a": microbit_characteristic("DA90", lambda: bytes([self.values["a"]]), notify=True),
            "b": microbit_characteristic("DA91", lambda: bytes([self.values["b"]]), notify=True),
        }
        self.service = Service(microbit_uuid("9882"), list(self.characteristics.values()))

    async def set(self, button, value):
        if self.values[button] != value:
            self.values[button] = value
            await self.microbit.send(self.characteristics[button], bytes([value]))

    def reset(self):
        self.values = dict.fromkeys(self.values, 0)

    def state(self):
        return dict(buttons=self.values)


class Accelerometer:
    """Notified once in a period while subscribed to, changed or not. A new period counts at once."""

    PERIODS = (617, 744, 2500, 5000, 10_000, 20_000, 40_000, 100_000, 1_000_000)
    """Those of its chip (LSM303), in µs."""
    DEFAULT_PERIOD = 20_000

    def __init__(self, microbit):
        self.microbit = microbit
        self.acceleration = [0, 0, -1024]
        self.period = self.DEFAULT_PERIOD
        self.notified = 0
        self.sampling = None
        self.data = microbit_characteristic("CA4B", self.sample, notify=True)
        self.data.on(Characteristic.EVENT_SUBSCRIPTION, lambda *_: self.restart_sampling())
        period = microbit_characteristic(
            "FB24", lambda: struct.pack("<H", self.period // 1000), write=self.write_period
        )
        self.service = Service(microbit_uuid("0753"), [self.data, period])

    def sample(self):
        return struct.pack("<3h", *self.acceleration)

    def write_period(self, value):
        wanted = uint16(value) * 1000
        self.period = next((period for period in self.PERIODS if period >= wanted), self.PERIODS[-1])
        log(self.microbit.name, "accelerometer period", self.period, "µs")
        self.restart_sampling()
        self.microbit.notice()

    def restart_sampling(self):
        if self.sampling:
            self.sampling.cancel()
        self.sampling = asyncio.create_task(self.send_samples())

    async def send_samples(self):
        while self.microbit.is_subscribed(self.data):
            await asyncio.sleep(self.period / 1e6)
            self.notified += await self.microbit.send(self.data, self.sample())

    def reset(self):
        self.period = self.DEFAULT_PERIOD

    def state(self):
        return dict(
            acceleration=self.acceleration,
            acceleration_period=self.period // 1000,
            acceleration_notified=self.notified,
        )


class Led:
    """The matrix, five rows with the leftmost LED in bit 4; texts are noted, not scrolled."""

    ROWS = 5
    LONGEST_TEXT = 20
    DEFAULT_DELAY = 120

    def __init__(self, microbit):
        self.microbit = microbit
        self.texts = []
        self.reset()
        matrix = microbit_characteristic("7B77", lambda: bytes(self.rows), write=self.write_rows)
        text = microbit_characteristic("93EE", write=self.write_text)
        delay = microbit_characteristic(
            "0D2D", lambda: struct.pack("<H", self.delay), write=self.write_delay
        )
        self.service = Service(microbit_uuid("D91D"), [matrix, text, delay])

    def write_rows(self, value):
        if len(value) > self.ROWS:
            raise ATT_Error(INVALID_LENGTH)
        self.rows[: len(value)] = [row & 0x1F for row in value]  # the others stay
        self.microbit.notice()

    def write_text(self, value):
        if len(value) > self.LONGEST_TEXT:
            raise ATT_Error(INVALID_LENGTH)
        self.texts.append(value.decode(errors="replace"))
        log(self.microbit.name, "text", self.texts[-1])
        self.microbit.notice()

    def write_delay(self, value):
        self.delay = uint16(value)
        self.microbit.notice()

    def reset(self):
        self.rows = [0] * self.ROWS
        self.delay = self.DEFAULT_DELAY

    def state(self):
        return dict(rows=self.rows, texts=self.texts, scrolling_delay=self.delay)


EXTRA_SERVICES = {"buttons": Buttons, "accelerometer": Accelerometer, "led": Led}
SERVICES = ("temperature", "temperature_read_only", "temperature_reversed", *EXTRA_SERVICES)
