"""The virtual peripherals: micro:bits that behave as their firmware does, and other peripherals."""

import asyncio
import struct
from itertools import takewhile

from bumble import att, hci
from bumble.core import AdvertisingData
from bumble.device import Device, DeviceConfiguration
from bumble.gatt import GATT_CHARACTERISTIC_ATTRIBUTE_TYPE, Characteristic, Service
from bumble.host import Host
from bumble.pairing import PairingConfig, PairingDelegate
from bumble.profiles.gatt_service import GenericAttributeProfileService
from bumble.transport.common import AsyncPipeSink

from radio import TIMED_OUT, LinkController, later, log
from services import EXTRA_SERVICES, microbit_characteristic, microbit_uuid, number

INSUFFICIENT_AUTHENTICATION = 0x05
WRITE_NOT_PERMITTED = 0x03
UNLIKELY = 0x0E

DEFAULT_PERIOD = 1000
ADVERTISING_INTERVAL = 200
MTU = 23

Properties = Characteristic.Properties


def friendly_name(index):
    """A name such as a micro:bit derives from its serial number: consonants and vowels in turn."""
    number = index * 7919 + 1234
    letters = ""
    for position in range(5):
        letters += ("zvgpt" if position % 2 == 0 else "uoiea")[number % 5]
        number //= 5
    return letters


class Peripheral:
    """A connectable advertiser: one host, one controller, one link at a time."""

    def __init__(self, index, name, address, air, adapter):
        self.index = index
        self.name = name
        self.address = hci.Address(address, hci.Address.RANDOM_DEVICE_ADDRESS)
        self.air = air
        self.adapter = adapter
        self.link = None
        self.links = 0
        self.drops = 0
        self.unheard = 0
        self.advertising = True
        self.wedged = False
        self.delay = 0
        """Seconds that each of its ATT answers takes."""
        self.absence = 0
        self.changed = asyncio.Condition()

    def services(self):
        return []

    def advertised(self):
        """Fields of its advertisements other than flags and name."""
        return []

    async def start(self):
        self.controller = LinkController(self.name, link=self.air, public_address="00:00:00:00:00:00")
        fields = [
            (AdvertisingData.FLAGS, bytes([0x06])),
            (AdvertisingData.COMPLETE_LOCAL_NAME, self.name.encode()),
            *self.advertised(),
        ]
        configuration = DeviceConfiguration(
            name=self.name,
            address=self.address,
            advertising_data=bytes(AdvertisingData(fields)),
            scan_response_data=b"",
            advertising_interval_min=ADVERTISING_INTERVAL,
            advertising_interval_max=ADVERTISING_INTERVAL,
            keystore=None,
            gatt_service_enabled=False,
        )
        self.device = Device(config=configuration, host=Host(self.controller, AsyncPipeSink(self.controller)))
        self.device.gatt_server.max_mtu = MTU
        # Like a micro:bit, without a hash of its services: bluetoothd discovers them at every connection.
        self.device.host.long_term_key_provider = self.long_term_key
        self.generic_attribute = GenericAttributeProfileService(database_hash_enabled=False)
        self.device.add_service(self.generic_attribute)
        for service in self.services():
            self.device.add_service(service)
        self.device.on("connection", self.on_link)
        self.answer = self.device.gatt_server.on_gatt_pdu
        self.device.gatt_server.on_gatt_pdu = self.on_request
        self.device.pairing_config_factory = self.pairing_configuration
        await self.device.power_on()
        await self.advertise()

    def pairing_configuration(self, link):
        return PairingConfig(delegate=Refusal())

    async def long_term_key(self, link_handle, random_number, diversifier):
        """The key that it gave to the central. Bumble would use the central's own."""
        link = self.device.lookup_connection(link_handle)
        if key := self.device.smp_manager.get_long_term_key(link, random_number, diversifier):
            return key
        keys = await self.device.keystore.get(str(link.peer_address))
        return keys and keys.ltk_central.value

    async def advertise(self):
        if self.advertising and self.link is None:
            await self.device.start_advertising(auto_restart=False)

    def on_request(self, link, request):
        if self.wedged:
            return
        if self.delay:
            later(self.delay, self.answer, link, request)
        else:
            self.answer(link, request)

    def refuse(self, link, request, code):
        handle = getattr(request, "attribute_handle", 0)
        self.device.gatt_server.send_response(link, att.ATT_Error_Response(request.op_code, handle, code))

    def on_link(self, link):
        self.link = link
        self.links += 1
        log(self.name, "connected")
        link.on("disconnection", self.on_link_end)
        self.notice()

    def on_link_end(self, reason):
        self.link = None
        log(self.name, "disconnected", hex(reason))
        later(0.02, lambda: asyncio.create_task(self.advertise()))
        self.notice()

    def is_subscribed(self, characteristic):
        if self.device.gatt_server.get_attribute(characteristic.handle) is not characteristic:
            return False  # it is not served
        subscriptions = self.device.gatt_server.subscribers.get(self.link) or {}
        return any(subscriptions.get(characteristic.handle, b""))

    async def send(self, characteristic, value):
        """Notifies the value, or indicates it until it is confirmed; whether there was a subscription."""
        if not self.is_subscribed(characteristic):
            return False
        if characteristic.properties & Properties.NOTIFY:
            await self.device.notify_subscribers(characteristic, value)
        else:
            await self.device.indicate_subscribers(characteristic, value)
        return True

    def notice(self):
        """Wakes the waiters for a state (see `until`)."""

        async def wake():
            async with self.changed:
                self.changed.notify_all()

        asyncio.create_task(wake())

    def state(self):
        return dict(
            name=self.name,
            address=str(self.address).split("/")[0],
            connected=self.link is not None,
            links=self.links,
            drops=self.drops,
            unheard=self.unheard,
        )

    async def until(self, wanted, within):
        """The state, as soon as it has the wanted values; TimeoutError after `within` seconds."""

        def reached():
            state = self.state()
            return all(state[key] == value for key, value in wanted.items())

        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(reached), within)

    async def disconnect(self):
        if self.link is not None:
            await self.link.disconnect()

    def vanish(self):
        self.air.out_of_range.add(self.controller)
        self.absence += 1
        absence = self.absence

        def time_out():
            if absence == self.absence:  # otherwise it came back in time
                self.air.cut(self.address, TIMED_OUT)

        later(self.adapter.supervision, time_out)

    def drop_next(self, packets, linger):
        """Its next link falls silent for good after that many packets of both directions; `linger` seconds later
        both ends notice."""

        def end():
            self.air.cut(self.address, TIMED_OUT)
            self.air.out_of_range.discard(self.controller)
            self.drops += 1
            self.notice()

        def fall_silent():
            log(self.name, "drops its link,", packets, "packets,", linger, "s")
            self.air.out_of_range.add(self.controller)
            later(linger, end) if linger else end()

        def count(_):
            self.air.after_packets[self.address] = [packets, fall_silent]

        self.device.once("connection", count)

    def come_back(self):
        self.air.out_of_range.discard(self.controller)
        self.absence += 1

    def set_deaf(self, on):
        if on:
            self.adapter.deaf[bytes(self.address)] = self.on_unheard
        else:
            self.adapter.deaf.pop(bytes(self.address), None)

    def on_unheard(self):
        self.unheard += 1
        self.notice()

    def set_unstable(self, on):
        (self.adapter.unstable.add if on else self.adapter.unstable.discard)(bytes(self.address))


class Refusal(PairingDelegate):
    """Refuses to pair."""

    async def accept(self):
        return False


class Pairing(PairingDelegate):
    """A micro:bit's part of pairing: JustWorks, or it displays a passkey."""

    def __init__(self, microbit):
        io = self.DISPLAY_OUTPUT_ONLY if microbit.security == "passkey" else self.NO_OUTPUT_NO_INPUT
        super().__init__(io)
        self.microbit = microbit

    async def accept(self):
        return await self.microbit.accept_pairing()

    async def display_number(self, number, digits):
        self.microbit.display(number)


class Microbit(Peripheral):
    """A BBC micro:bit with device information and the services named (by default the temperature), open (no
    pairing) until told otherwise.

    Its `security` is "open", "just_works" or "passkey". It pairs as the V2: legacy pairing, with a bond. Its keys
    survive a reset, but not `forget`, which is what flashing another program does.

    As in the firmware: it samples and notifies once in a period, changed or not; a new period counts from the
    sample already scheduled; the period is echoed as written, kept over a disconnect and lost on reset.
    """

    def __init__(self, index, air, adapter, services=("temperature",), model=2):
        address = "D%X:5A:0%X:%02X:C0:DE" % (index % 16, index // 16 % 16, index)
        super().__init__(index, "BBC micro:bit [%s]" % friendly_name(index), address, air, adapter)
        self.temperature = 20 + index
        self.period = DEFAULT_PERIOD
        self.notified = 0
        self.served = services
        self.model = model
        self.extras = {name: EXTRA_SERVICES[name](self) for name in EXTRA_SERVICES}
        self.silent = False
        self.forged = None
        self.security = "open"
        self.pairing_error = INSUFFICIENT_AUTHENTICATION
        """The ATT error with which its own services ask for encryption, unless they are open."""
        self.pairs = True
        """Whether it pairs with anybody; else it refuses (it is not in pairing mode)."""
        self.pairings = 0
        """How often it was asked to pair."""
        self.passkey = None
        """The last one that it has displayed."""
        self.fault = None
        self.faults = 0
        self.mute = None
        """The link on which it answers no more."""

    def services(self):
        def readable(uuid, value):
            return Characteristic(uuid, Properties.READ, Characteristic.READABLE, value)

        self.temperature_characteristic = microbit_characteristic(
            "9250", lambda: self.right_or_forged(struct.pack("b", self.temperature)), notify=True
        )
        self.own_services = [self.own_service(name) for name in self.served]
        return [
            Service(
                "180A",
                [
                    readable("2A24", b"BBC micro:bit V2" if self.model == 2 else b"BBC micro:bit"),
                    readable("2A25", b"%010d" % (1234567890 + self.index)),
                    readable("2A26", b"2.1.1"),
                ],
            ),
            *self.own_services,
        ]

    def own_service(self, name):
        match name:
            case "temperature" | "temperature_reversed":  # the same handles in another order
                write = number(2, self.write_period)
            case "temperature_read_only":  # the same handles, but the period cannot be written
                write = None
            case _:
                return self.extras[name].service
        period = microbit_characteristic(
            "1B25", lambda: self.right_or_forged(struct.pack("<H", self.period)), write=write
        )
        characteristics = [self.temperature_characteristic, period]
        if name == "temperature_reversed":
            characteristics.reverse()
        return Service(microbit_uuid("6100"), characteristics)

    async def start(self):
        await super().start()
        self.restart_sampling()

    async def serve(self, names, changed):
        """Its own services are these from now on. Those before the first that differs stay as they are; the others
        get new handles, and nobody is subscribed to them. The central is told that the handles `changed` (first and
        last) have changed, or nothing if it is None."""
        server = self.device.gatt_server
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(self.served, names))))
        first = self.own_services[same].handle if same < len(self.served) else server.next_handle()
        for service in self.own_services[same:]:
            server.services.remove(service)
        del server.attributes[first - 1 :]
        server.attributes_by_handle.clear()
        subscriptions = server.subscribers.get(self.link, {})
        for handle in [handle for handle in subscriptions if handle >= first]:
            del subscriptions[handle]
        self.served = names
        self.own_services[same:] = [self.own_service(name) for name in names[same:]]
        for service in self.own_services[same:]:
            self.device.add_service(service)
        log(self.name, "serves", *names)
        if changed:
            await self.device.indicate_subscriber(
                self.link, self.generic_attribute.service_changed_characteristic, struct.pack("<2H", *changed)
            )

    def fail_next(self, step, how, times, seconds):
        """What happens instead of an answer to the next requests of that step:

        - "error": an ATT error.
        - "drop": the link ends.
        - "silence": neither this one nor any later request of this link is answered; after `seconds`, where they
          are given, the link ends.
        """
        self.fault = (step, how, seconds)
        self.faults_left = times

    def step(self, request):
        """The step of a connection's set-up to which a request belongs."""
        value = self.temperature_characteristic.handle
        configuration = value + 1  # Bumble puts it there
        match request:
            case att.ATT_Read_By_Group_Type_Request():
                return "resolve"
            case att.ATT_Read_Request() if request.attribute_handle == value:
                return "read"
            case att.ATT_Write_Request(attribute_value=b"\x01\x00") if (
                request.attribute_handle == configuration
            ):
                return "subscribe"

    def on_request(self, link, request):
        if link is self.mute:
            return
        if self.fault and self.step(request) == self.fault[0]:
            return self.fail(link, request)
        if self.security != "open" and self.is_protected(request) and not link.is_encrypted:
            self.refuse(link, request, self.pairing_error)
        elif self.is_write_to_declaration(request):  # Bumble would let it change
            self.refuse(link, request, WRITE_NOT_PERMITTED)
        else:
            super().on_request(link, request)

    def is_write_to_declaration(self, request):
        if not isinstance(request, att.ATT_Write_Request):
            return False
        attribute = self.device.gatt_server.get_attribute(request.attribute_handle)
        return attribute is not None and attribute.type == GATT_CHARACTERISTIC_ATTRIBUTE_TYPE

    def on_link_end(self, reason):
        super().on_link_end(reason)
        for extra in self.extras.values():
            extra.link_ended()

    def is_protected(self, request):
        kinds = (att.ATT_Read_Request, att.ATT_Write_Request, att.ATT_Write_Command)
        return isinstance(request, kinds) and any(
            service.handle < request.attribute_handle <= service.end_group_handle
            for service in self.own_services
        )

    def pairing_configuration(self, link):
        random = PairingConfig.AddressType.RANDOM
        mitm = self.security == "passkey"
        return PairingConfig(sc=False, mitm=mitm, delegate=Pairing(self), identity_address_type=random)

    async def accept_pairing(self):
        self.pairings += 1
        log(self.name, "is asked to pair")
        self.notice()
        if self.fault and self.fault[0] == "pair":
            how = self.fault[1]
            self.end_fault()
            match how:
                case "drop":
                    self.air.cut(self.address, TIMED_OUT)
                case "silence":
                    await asyncio.Event().wait()
            return False
        return self.pairs and self.security != "open"

    def display(self, passkey):
        self.passkey = passkey
        log(self.name, "displays the passkey", passkey)
        self.notice()

    async def forget(self):
        """Deletes all its bonds."""
        await self.device.keystore.delete_all()
        log(self.name, "has forgotten its bonds")

    def end_fault(self):
        step, how, _ = self.fault
        self.faults += 1
        self.faults_left -= 1
        if self.faults_left == 0:
            self.fault = None
        log(self.name, "fault:", step, how)

    def fail(self, link, request):
        _, how, seconds = self.fault
        self.end_fault()
        match how:
            case "error":
                self.refuse(link, request, UNLIKELY)
            case "drop":
                self.air.cut(self.address, TIMED_OUT)
            case "silence":
                self.mute = link
                if seconds is not None:
                    later(seconds, self.air.cut, self.address, TIMED_OUT)
        self.notice()

    def restart_sampling(self):
        self.sampling = asyncio.create_task(self.sample())

    async def sample(self):
        while True:
            await asyncio.sleep(max(self.period, 1) / 1000)
            self.notified += await self.send(
                self.temperature_characteristic,
                self.right_or_forged(struct.pack("b", self.temperature)),
            )

    def right_or_forged(self, value):
        return value if self.forged is None else self.forged

    def flood(self, rate, seconds):
        """Notifies temperature and button A so often in a second, whatever the period."""

        async def run():
            button = self.extra("buttons").characteristics["a"]
            for count in range(int(rate * seconds)):
                await self.send(self.temperature_characteristic, struct.pack("b", count % 100))
                await self.send(button, bytes([count % 2]))
                await asyncio.sleep(1 / rate)

        self.flooding = asyncio.create_task(run())

    def forge(self, value):
        """From now on its temperature, its period and its button A are these bytes, whatever their length; None: the
        right ones. They are also notified, as far as they fit, and sent by the UART."""
        self.forged = None if value is None else bytes.fromhex(value)
        if self.forged is not None:
            button, uart = self.extra("buttons").characteristics["a"], self.extra("uart").sent
            for characteristic in (self.temperature_characteristic, button, uart):
                asyncio.create_task(self.send(characteristic, self.forged))

    async def send(self, characteristic, value):
        if self.silent or self.extras["log"].drops(characteristic):
            return False
        return await super().send(characteristic, value)

    def extra(self, name):
        if name not in self.served:
            raise ValueError("it has no service " + name)
        return self.extras[name]

    def write_period(self, value):
        self.period = value
        log(self.name, "period", self.period)
        self.notice()

    def state(self):
        state = super().state() | dict(
            temperature=self.temperature, period=self.period, notified=self.notified, faults=self.faults
        )
        state |= dict(
            encrypted=self.link is not None and self.link.is_encrypted,
            bonds=len(self.device.keystore.all_keys),
            pairings=self.pairings,
            passkey=self.passkey,
        )
        for name in self.served:
            if name in self.extras:
                state |= self.extras[name].state()
        return state

    async def reset(self):
        """The reset button: the radio falls silent, RAM is lost, and it advertises again once booted."""
        self.sampling.cancel()
        self.advertising = False
        self.vanish()
        try:
            await self.until({"connected": False}, self.adapter.supervision + 5)
        finally:
            self.come_back()
        await self.device.stop_advertising()
        self.period = DEFAULT_PERIOD
        for extra in self.extras.values():
            extra.reset()
        self.notice()
        await asyncio.sleep(0.3)
        self.advertising = True
        await self.advertise()
        self.restart_sampling()


class Stranger(Peripheral):
    """A connectable peripheral that is not a micro:bit, though its name may look like one."""

    NAMES = ("Thermo beacon", "My BBC micro:bit", "bbc micro:bit [zugev]")

    def __init__(self, index, air, adapter):
        name = self.NAMES[index % len(self.NAMES)]
        super().__init__(index, name, "E%X:00:00:00:5A:FE" % (index % 16), air, adapter)

    def services(self):
        return [
            Service("180F", [Characteristic("2A19", Properties.READ, Characteristic.READABLE, bytes([77]))])
        ]
