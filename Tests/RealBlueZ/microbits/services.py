"""The micro:bit's services other than the temperature, as its firmware has them: codal-microbit-v2 for model 2,
microbit-dal for model 1 (V1.3).

The public methods of a service are called by the operation "call" of the control port (see __main__.py).
"""

import asyncio
import struct

from bumble.att import ATT_Error
from bumble.gatt import Characteristic, CharacteristicValue, Descriptor, Service

from radio import log

READ_NOT_PERMITTED = 0x02
WRITE_NOT_PERMITTED = 0x03
INVALID_LENGTH = 0x0D


def microbit_uuid(number):
    return "E95D%s-251D-470A-A062-FA1922DFA9A8" % number


def uart_uuid(number):
    return "6E40%04X-B5A3-F393-E0A9-E50E24DCCA9E" % number


def characteristic(uuid, read=None, write=None, notify=False, indicate=False, command=False):
    """`read` returns the bytes, `write` gets them; without one of them, that operation is refused. `command`: it can
    also be written without response."""

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
    if command:
        properties |= Characteristic.Properties.WRITE_WITHOUT_RESPONSE
    if notify:
        properties |= Characteristic.Properties.NOTIFY
    if indicate:
        properties |= Characteristic.Properties.INDICATE
    value = CharacteristicValue(
        read=(lambda _: read()) if read else refuse_read,
        write=(lambda _, value: write(value)) if write else refuse_write,
    )
    return Characteristic(uuid, properties, permissions, value)


def microbit_characteristic(number, read=None, write=None, **options):
    """One of the micro:bit's own."""
    return characteristic(microbit_uuid(number), read, write, **options)


def fixed(length, write):
    """Accepts writes of that many bytes. The Bluetooth stack refuses longer writes, the firmware ignores shorter
    ones."""

    def check(value):
        if len(value) > length:
            raise ATT_Error(INVALID_LENGTH)
        if len(value) == length:
            write(value)

    return check


def number(size, write):
    """Like `fixed`, for a little-endian number."""
    return fixed(size, lambda value: write(int.from_bytes(value, "little")))


class Extra:
    """A service of a micro:bit."""

    def __init__(self, microbit):
        self.microbit = microbit

    @property
    def is_v1(self):
        return self.microbit.model == 1

    def reset(self):
        """The reset button."""

    def link_ended(self):
        pass

    def state(self):
        return {}


class Buttons(Extra):
    """0: released, 1: pressed, 2: held for 1.5 s; notified on change."""

    def __init__(self, microbit):
        super().__init__(microbit)
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


class Sampler:
    """Notifies a sample once per period while there is a subscriber, even if it is unchanged."""

    def __init__(self, microbit, characteristic, sample, period):
        """`sample` takes one and returns its bytes; `period` returns the seconds between two."""
        self.microbit = microbit
        self.characteristic = characteristic
        self.sample = sample
        self.period = period
        self.notified = 0
        self.task = None
        characteristic.on(Characteristic.EVENT_SUBSCRIPTION, lambda *_: self.restart())

    def restart(self):
        if self.task:
            self.task.cancel()
        self.task = asyncio.create_task(self.run())

    async def run(self):
        while self.microbit.is_subscribed(self.characteristic):
            await asyncio.sleep(self.period())
            self.notified += await self.microbit.send(self.characteristic, self.sample())


class Accelerometer(Extra):
    """A new period takes effect immediately."""

    PERIODS = {
        1: (1000, 2000, 5000, 10_000, 20_000, 80_000, 160_000, 640_000),
        2: (617, 744, 2500, 5000, 10_000, 20_000, 40_000, 100_000, 1_000_000),
    }
    """Those of its chip (MMA8653, LSM303), in µs."""
    DEFAULT_PERIOD = 20_000

    def __init__(self, microbit):
        super().__init__(microbit)
        self.acceleration = [0, 0, -1024]
        self.period = self.DEFAULT_PERIOD
        self.data = microbit_characteristic("CA4B", self.sample, notify=True)
        self.sampler = Sampler(microbit, self.data, self.sample, lambda: self.period / 1e6)
        period = microbit_characteristic(
            "FB24", lambda: struct.pack("<H", self.period // 1000), number(2, self.write_period)
        )
        self.service = Service(microbit_uuid("0753"), [self.data, period])

    def sample(self):
        return struct.pack("<3h", *self.acceleration)

    def write_period(self, value):
        periods = self.PERIODS[self.microbit.model]
        self.period = next((period for period in periods if period >= value * 1000), periods[-1])
        log(self.microbit.name, "accelerometer period", self.period, "µs")
        self.sampler.restart()
        self.microbit.notice()

    def reset(self):
        self.period = self.DEFAULT_PERIOD

    def state(self):
        return dict(
            acceleration=self.acceleration,
            acceleration_period=self.period // 1000,
            acceleration_notified=self.sampler.notified,
        )


class Magnetometer(Extra):
    """The field, the bearing, their period, calibration.

    Until the chip is configured, a read returns the period that was written. A V1 first ends its sample, and the
    firmware checks for that every 100 ms.
    """

    PERIODS = {
        1: (12, 25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800),
        2: (10, 20, 50, 100),
    }
    """Those of its chip (MAG3110, LSM303), in ms."""
    DEFAULT_PERIOD = 100
    START, DONE, FAILED = 1, 2, 3
    CALIBRATION_TIME = 3
    """Seconds."""

    def __init__(self, microbit):
        super().__init__(microbit)
        self.field = [1000, -2000, 3000]
        self.heading = 0
        self.is_calibrated = False
        self.calibration_result = self.DONE
        self.calibrations = 0
        self.period = self.read_period = self.DEFAULT_PERIOD
        self.settling = None
        self.data = microbit_characteristic("FB11", self.sample, notify=True)
        self.bearing = microbit_characteristic("9715", self.bearing_bytes, notify=True)
        self.sampler = Sampler(microbit, self.data, self.take_sample, lambda: self.period / 1000)
        period = microbit_characteristic(
            "386C", lambda: struct.pack("<H", self.read_period), number(2, self.write_period)
        )
        self.calibration = microbit_characteristic("B358", write=number(1, self.calibrate), notify=True)
        self.service = Service(microbit_uuid("F2D8"), [self.data, self.bearing, period, self.calibration])

    def sample(self):
        # nT are truncated to 16 bits.
        return b"".join(struct.pack("<i", value)[:2] for value in self.field)

    def bearing_bytes(self):
        return struct.pack("<H", self.heading if self.is_calibrated else 0)

    def take_sample(self):
        if self.is_calibrated:
            asyncio.create_task(self.microbit.send(self.bearing, self.bearing_bytes()))
        return self.sample()

    def set_field(self, *nanotesla):
        self.field = nanotesla

    def set_bearing(self, degrees):
        self.heading = degrees

    def set_calibration_result(self, result):
        self.calibration_result = result

    def write_period(self, value):
        self.read_period = value
        if self.settling:
            self.settling.cancel()
        self.settling = asyncio.create_task(self.configure(value))

    async def configure(self, wanted):
        await asyncio.sleep(-(-self.period // 100) * 0.1 if self.is_v1 else 0.05)
        periods = self.PERIODS[self.microbit.model]
        self.period = self.read_period = next((p for p in periods if p >= wanted), periods[-1])
        log(self.microbit.name, "magnetometer period", self.period, "ms")
        self.sampler.restart()
        self.microbit.notice()

    def calibrate(self, value):
        if value == self.START:
            asyncio.create_task(self.finish_calibration())

    async def finish_calibration(self):
        self.calibrations += 1
        await asyncio.sleep(self.CALIBRATION_TIME)
        self.is_calibrated = self.calibration_result == self.DONE
        await self.microbit.send(self.calibration, bytes([self.calibration_result]))

    def reset(self):
        self.period = self.read_period = self.DEFAULT_PERIOD

    def state(self):
        return dict(magnetometer_period=self.period, calibrations=self.calibrations)


class Led(Extra):
    """The matrix, five rows with the leftmost LED in bit 4; texts are recorded, not scrolled."""

    ROWS = 5
    LONGEST_TEXT = 20
    DEFAULT_DELAY = 120

    def __init__(self, microbit):
        super().__init__(microbit)
        self.texts = []
        self.drawn = [0] * self.ROWS
        self.reset()
        matrix = microbit_characteristic("7B77", lambda: bytes(self.rows), self.write_rows)
        text = microbit_characteristic("93EE", write=self.write_text)
        delay = microbit_characteristic(
            "0D2D", lambda: struct.pack("<H", self.delay), number(2, self.write_delay)
        )
        self.service = Service(microbit_uuid("D91D"), [matrix, text, delay])

    def draw(self, *rows):
        """LEDs that the program adds to each written picture."""
        self.drawn = rows

    def write_rows(self, value):
        if len(value) > self.ROWS:
            raise ATT_Error(INVALID_LENGTH)
        if not value:
            return
        # `stopAnimation` clears all rows first.
        rows = [row & 0x1F for row in value] + [0] * (self.ROWS - len(value))
        self.rows = [row | drawn for row, drawn in zip(rows, self.drawn)]
        self.microbit.notice()

    def write_text(self, value):
        if len(value) > self.LONGEST_TEXT:
            raise ATT_Error(INVALID_LENGTH)
        self.texts.append(value.decode(errors="replace"))
        log(self.microbit.name, "text", self.texts[-1])
        self.microbit.notice()

    def write_delay(self, value):
        self.delay = value
        self.microbit.notice()

    def reset(self):
        self.rows = [0] * self.ROWS
        self.delay = self.DEFAULT_DELAY

    def state(self):
        return dict(rows=self.rows, texts=self.texts, scrolling_delay=self.delay)


class Pins(Extra):
    """Pins 0 to 18 (17 and 18 are P19 and P20). The masks say which are analogue and which are inputs; inputs are
    notified when they change, at most ten at once."""

    COUNT = 19
    MOST_PAIRS = 10
    PWM_RECORD = struct.Struct("<BHI")

    def __init__(self, microbit):
        super().__init__(microbit)
        self.voltages = [0] * self.COUNT
        """The voltages at the pins: 0 to 255."""
        self.reset()
        analog = microbit_characteristic(
            "5899", lambda: struct.pack("<I", self.analog), number(4, self.write_analog)
        )
        inputs = microbit_characteristic(
            "B9FE", lambda: struct.pack("<I", self.inputs), number(4, self.write_inputs)
        )
        pwm = microbit_characteristic("D822", write=self.write_pwm)
        self.data = microbit_characteristic("8D00", self.read, self.write, notify=True)
        self.service = Service(microbit_uuid("127B"), [analog, inputs, pwm, self.data])

    def value(self, pin):
        return self.voltages[pin] if self.analog >> pin & 1 else int(self.voltages[pin] > 127)

    def pairs(self, unchanged):
        """Pins and values of the inputs; without `unchanged` only of those that have changed since they were sent."""
        pairs = []
        for pin in range(self.COUNT):
            if self.inputs >> pin & 1 and (unchanged or self.sent[pin] != self.value(pin)):
                self.sent[pin] = self.value(pin)
                pairs.append(bytes([pin, self.sent[pin]]))
                if len(pairs) == self.MOST_PAIRS:
                    break
        return b"".join(pairs)

    async def connect(self, voltages):
        """`voltages`: by the number of the pin, as text."""
        for pin, value in voltages.items():
            self.voltages[int(pin)] = value
        await self.notify_changes()

    async def notify_changes(self):
        if self.microbit.link:
            while pairs := self.pairs(unchanged=False):
                await self.microbit.send(self.data, pairs)

    def write_analog(self, mask):
        self.analog = mask
        asyncio.create_task(self.notify_changes())
        self.microbit.notice()

    def write_inputs(self, mask):
        self.inputs = mask
        asyncio.create_task(self.notify_changes())
        self.microbit.notice()

    def read(self):
        pairs = self.pairs(unchanged=True)
        if self.is_v1 and pairs:
            asyncio.create_task(self.microbit.send(self.data, pairs))
        return pairs

    def write(self, value):
        if len(value) > 2 * self.MOST_PAIRS:
            raise ATT_Error(INVALID_LENGTH)
        for pin, level in zip(value[::2], value[1::2]):
            pin = pin if pin < self.COUNT else 0  # on a V2; a V1 reads past its table
            if not self.inputs >> pin & 1:
                self.outputs[pin] = level
        self.microbit.notice()

    def write_pwm(self, value):
        if len(value) > 2 * self.PWM_RECORD.size:
            raise ATT_Error(INVALID_LENGTH)
        if len(value) % self.PWM_RECORD.size == 0:  # otherwise it is ignored
            for pin, level, period in self.PWM_RECORD.iter_unpack(value):
                self.pulses[pin] = [level, period]
        self.microbit.notice()

    def reset(self):
        self.analog = self.inputs = 0
        self.sent = [0] * self.COUNT
        self.outputs = {}
        self.pulses = {}

    def state(self):
        return dict(
            analog_pins=self.analog, input_pins=self.inputs, outputs=self.outputs, pulses=self.pulses
        )


class Uart(Extra):
    """Text in both directions: indications of at most 20 bytes, and writes into the buffer of a MakeCode program.
    Bytes that do not fit into the buffer are lost."""

    SENT, RECEIVED = uart_uuid(2), uart_uuid(3)
    """From the micro:bit, and to it."""
    LONGEST = 20
    BUFFER = 60
    PROGRAM_READS = 0.05
    """Seconds after which the program empties the buffer."""

    def __init__(self, microbit):
        super().__init__(microbit)
        self.program_reads = True
        self.buffer = b""
        self.read = b""
        self.writes = []
        self.reading = None
        self.lost = 0
        self.sent = characteristic(self.SENT, indicate=True)
        received = characteristic(self.RECEIVED, write=self.receive, command=True)
        self.service = Service(uart_uuid(1), [self.sent, received])

    async def send(self, text):
        """The program sends a text, and waits until each indication is confirmed. Without a subscription it sends
        nothing."""
        data = text.encode()
        for start in range(0, len(data), self.LONGEST):
            if not await self.microbit.send(self.sent, data[start : start + self.LONGEST]):
                return

    def set_program_reads(self, on):
        self.program_reads = on
        self.read_buffer()

    def receive(self, value):
        if len(value) > self.LONGEST:
            raise ATT_Error(INVALID_LENGTH)
        self.writes.append([asyncio.get_running_loop().time(), len(value)])
        room = self.BUFFER - len(self.buffer)
        self.buffer += value[:room]
        self.lost += len(value[room:])
        if self.reading is None:
            self.reading = asyncio.get_running_loop().call_later(self.PROGRAM_READS, self.read_buffer)

    def read_buffer(self):
        self.reading = None
        if self.program_reads:
            self.read += self.buffer
            self.buffer = b""
            self.microbit.notice()

    def state(self):
        return dict(uart_read=self.read.decode(errors="replace"), uart_writes=self.writes, uart_lost=self.lost)


class NordicUart(Uart):
    """With Nordic's order of the two characteristics (MICROBIT_BLE_NORDIC_STYLE_UART)."""

    SENT, RECEIVED = Uart.RECEIVED, Uart.SENT


class Events(Extra):
    """Events of the micro:bit that the client has asked for, events that the client raises, and events that the
    program waits for."""

    RECORD = struct.Struct("<HH")
    MOST_RECORDS = {1: 5, 2: 1}
    """In a write."""

    def __init__(self, microbit):
        super().__init__(microbit)
        self.wanted = []
        """By the client."""
        self.received = []
        self.required = []
        """By the program."""
        self.position = 0
        """Of the next record of `required` that is read."""
        self.last = self.RECORD.pack(0, 0)
        self.event = microbit_characteristic("9775", lambda: self.last, notify=True)
        requirement = microbit_characteristic("B84C", self.read_requirement, notify=True)
        event = microbit_characteristic("5404", write=self.records(self.received), command=True)
        wanted = microbit_characteristic("23C4", write=self.records(self.wanted))
        self.service = Service(microbit_uuid("93AF"), [self.event, requirement, event, wanted])

    def records(self, records):
        def append(value):
            if len(value) > self.RECORD.size * self.MOST_RECORDS[self.microbit.model]:
                raise ATT_Error(INVALID_LENGTH)
            whole = len(value) // self.RECORD.size * self.RECORD.size
            records.extend(map(list, self.RECORD.iter_unpack(value[:whole])))
            self.microbit.notice()

        return append

    def read_requirement(self):
        """Each read returns the next record, then an empty value; the next link begins with the first one."""
        self.position += 1
        return b"".join(self.RECORD.pack(*record) for record in self.required[self.position - 1 : self.position])

    def require(self, *records):
        self.required = records

    async def raise_event(self, kind, value):
        """Notified if the client has asked for it; 0 means any."""
        if any(source in (0, kind) and wanted in (0, value) for source, wanted in self.wanted):
            self.last = self.RECORD.pack(kind, value)
            await self.microbit.send(self.event, self.last)

    def link_ended(self):
        # They are kept if the requirement was not read.
        if self.position:
            self.position = 0
            self.wanted.clear()

    def reset(self):
        self.position = 0
        self.wanted.clear()

    def state(self):
        return dict(events_wanted=self.wanted, events_received=self.received)


class DataLog(Extra):
    """The utility service of a V2: its data log, which survives a reset.

    One request at a time: others are ignored while a reply is made, and replace it while it waits for the queue, which has
    one place. That place is free again after a connection interval; meanwhile other notifications are dropped.
    """

    CAPACITY = 118_780
    INTERVAL = 0.03
    """Seconds of a connection interval."""
    WORK = 0.005
    CSV = 2

    def __init__(self, microbit):
        super().__init__(microbit)
        self.text = b""
        self.ignored = self.requests = self.dropped = 0
        self.making = self.queued = False
        self.task = None
        self.data = microbit_characteristic("0002", write=self.request, notify=True, command=True)
        self.service = Service(microbit_uuid("0001"), [self.data])

    def write(self, text):
        self.text = (self.text + text.encode())[: self.CAPACITY]

    def clear(self):
        self.text = b""

    def drops(self, characteristic):
        """Whether the queue has no place for a notification."""
        notifies = characteristic.properties & Characteristic.Properties.NOTIFY
        is_dropped = bool(self.queued and characteristic is not self.data and notifies)
        self.dropped += is_dropped
        return is_dropped

    def request(self, value):
        if not 1 <= len(value) <= 19:
            return
        if self.making:
            self.ignored += 1
            return
        self.link_ended()
        self.requests += 1
        self.task = asyncio.create_task(self.answer(self.replies(value.ljust(19, b"\0"))))

    def replies(self, value):
        job, kind, form = value[0] & 0xF0, value[1], value[2]
        index, count, length = struct.unpack_from("<3I", value, 4)
        if kind == 1:
            return [bytes([job]) + struct.pack("<I", len(self.text) if form == self.CSV else 0)]
        if kind != 2:
            return []
        if length > len(self.text):
            return [bytes([job | 0x0F]) + struct.pack("<i", -1001)]
        # The index is not checked: what is behind the end is rubbish.
        content = self.text[index : index + count].ljust(min(count, self.CAPACITY), b"\xff")
        return [
            bytes([job | number % 15]) + content[start : start + 19]
            for number, start in enumerate(range(0, len(content), 19))
        ]

    async def answer(self, replies):
        for reply in replies:
            self.making = True
            await asyncio.sleep(self.WORK)
            self.making = False
            while not self.microbit.is_subscribed(self.data):
                await asyncio.sleep(self.INTERVAL)
            self.queued = True
            await asyncio.sleep(self.INTERVAL)
            await self.microbit.send(self.data, reply)
            self.queued = False

    def link_ended(self):
        if self.task:
            self.task.cancel()
        self.making = self.queued = False

    def reset(self):
        self.link_ended()

    def state(self):
        return dict(log_requests=self.requests, log_ignored=self.ignored, log_dropped=self.dropped)


class Keyboard(Extra):
    """HID over GATT: with a bond it is a keyboard of the central's machine. No block of MakeCode's adds it."""

    KEYS = bytes.fromhex(
        "05010906a101050719e029e71500250175019508810295017508810195067508150025650507190029658100c0"
    )
    """The report map of a boot keyboard."""

    def __init__(self, microbit):
        super().__init__(microbit)
        report = characteristic("2A4D", lambda: bytes(8), notify=True)
        report.descriptors = [Descriptor("2908", Descriptor.READABLE, bytes([0, 1]))]
        self.service = Service(
            "1812",
            [
                characteristic("2A4A", lambda: bytes.fromhex("11010002")),
                characteristic("2A4B", lambda: self.KEYS),
                report,
            ],
        )


EXTRA_SERVICES = {
    "buttons": Buttons,
    "accelerometer": Accelerometer,
    "magnetometer": Magnetometer,
    "led": Led,
    "pins": Pins,
    "uart": Uart,
    "uart_nordic": NordicUart,
    "events": Events,
    "log": DataLog,
    "keyboard": Keyboard,
}
SERVICES = ("temperature", "temperature_read_only", "temperature_reversed", *EXTRA_SERVICES)
