"""A second program on the system bus: its calls to bluetoothd about a device, and what it receives.

`events` are lines in the form of Tests/BlueZSimulatorTests/recordings, their fields separated by tabs:

    > A PATH INTERFACE.MEMBER ARGUMENT…         a call
    < A MEMBER ok [VALUE] | ERROR TEXT          its answer; with the value for ReadValue
    ! PATH PropertiesChanged INTERFACE CHANGED INVALIDATED
    ! PATH InterfacesAdded INTERFACES           (PATH is that of the object)
    ! PATH InterfacesRemoved INTERFACES
    ~ PATH                                      one or more notified values of that characteristic
    ? MEMBER ARGUMENT…                          a call of its agent
    = ok | ERROR                                its agent's answer
    * OPERATION                                 an operation on the micro:bit by the scenario
"""

import asyncio
import threading
import time

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from journal import Journal
from world import OUT

CHARACTERISTIC = "org.bluez.GattCharacteristic1"
AGENT = "/agent"
LONGEST_CALL = 60
"""Seconds."""


def text(value, signature=""):
    """A value with its type; signal strengths as type only, because they vary."""
    if isinstance(value, Variant):
        return text(value.value, value.signature)
    if isinstance(value, dict):
        fields = (f"{key}={'n' if key == 'RSSI' else text(field)}" for key, field in value.items())
        return "{" + ";".join(fields) + "}"
    if isinstance(value, bytes):
        return "ay:" + value.hex()
    if isinstance(value, list):
        return "as:" + ",".join(value) if value else "{}"
    return f"{signature}:{str(value).lower() if isinstance(value, bool) else value}"


class Bus:
    def __init__(self, device):
        """`device`: the object path of the one whose events are recorded."""
        self.device = device
        self.events = Journal()
        self.reading = 0
        self.passkey = lambda: None
        """What its agent answers: a passkey, None: that it refuses."""
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.run(self.connect())

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(LONGEST_CALL)

    def record(self, *fields):
        line = "\t".join(fields)
        self.events.append(line)
        with open(f"{OUT}/bus.tsv", "a") as log:
            log.write(f"{time.monotonic():9.3f}\t{line}\n")

    async def connect(self):
        self.connection = await MessageBus(bus_type=BusType.SYSTEM, negotiate_unix_fd=True).connect()
        self.connection.add_message_handler(self.handle)
        daemon = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
        rule = "type='signal',sender='org.bluez'"
        await self.connection.call(Message(*daemon, "AddMatch", signature="s", body=[rule]))

    def register_agent(self, capability):
        self.call("/org/bluez", "AgentManager1.RegisterAgent", "os", AGENT, capability)

    def answer_as_agent(self, message):
        self.record("?", message.member, *map(text, message.body))
        if message.member == "RequestPasskey" and (passkey := self.passkey()) is not None:
            self.record("=", "ok")
            return Message.new_method_return(message, "u", [passkey])
        if message.member in ("RequestAuthorization", "Cancel", "Release"):
            self.record("=", "ok")
            return Message.new_method_return(message)
        self.record("=", "org.bluez.Error.Rejected")
        return Message.new_error(message, "org.bluez.Error.Rejected", "refused")

    def handle(self, message):
        body = message.body
        if message.message_type == MessageType.METHOD_CALL and message.path == AGENT:
            return self.answer_as_agent(message)
        if message.message_type != MessageType.SIGNAL:
            return
        if message.member == "PropertiesChanged" and message.path.startswith(self.device):
            interface, changed, invalidated = body
            if "Value" in changed and not self.reading:
                self.notified(message.path)
            else:
                self.record("!", message.path, message.member, interface, text(changed), ",".join(invalidated))
        elif message.member in ("InterfacesAdded", "InterfacesRemoved") and body[0].startswith(self.device):
            self.record("!", body[0], message.member, text(body[1]))

    def notified(self, path):
        if self.events.since()[-1:] != [f"~\t{path}"]:
            self.record("~", path)

    def call(self, path, member, signature="", *arguments):
        """Calls a method of org.bluez, `member` with the last word of its interface: "Device1.Connect"."""
        return self.run(self.ask(path, member, signature, arguments))

    def begin(self, path, member, signature="", *arguments):
        """The same without waiting for the reply, which is recorded when it comes."""
        asyncio.run_coroutine_threadsafe(self.ask(path, member, signature, arguments), self.loop)

    async def ask(self, path, member, signature, arguments):
        interface, name = f"org.bluez.{member}".rsplit(".", 1)
        self.record(">", "A", path, f"{interface}.{name}", *map(text, arguments))
        self.reading += name == "ReadValue"
        reply = await self.connection.call(
            Message("org.bluez", path, interface, name, signature=signature, body=list(arguments))
        )
        self.reading -= name == "ReadValue"
        if reply.message_type == MessageType.ERROR:
            self.record("<", "A", name, reply.error_name, *(line.strip() for line in reply.body))
        else:
            self.record("<", "A", name, "ok", *([text(reply.body[0])] if name == "ReadValue" else []))
        return reply

    def characteristics(self):
        """The path of each characteristic of the device, by its UUID in lower case."""
        manager = "org.freedesktop.DBus.ObjectManager"
        reply = self.run(self.connection.call(Message("org.bluez", "/", manager, "GetManagedObjects")))
        return {
            interfaces[CHARACTERISTIC]["UUID"].value: path
            for path, interfaces in reply.body[0].items()
            if path.startswith(self.device) and CHARACTERISTIC in interfaces
        }

    def wait(self, wanted, within, what, after=0):
        """The first event with that text in it."""
        return self.events.wait(lambda event: wanted in event, within, what, after)
