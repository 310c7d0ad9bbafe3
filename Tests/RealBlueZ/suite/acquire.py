"""Another program, which subscribes by AcquireNotify: acquire.py DEVICE CHARACTERISTIC

Finds the device (an object path) and connects to it, calls AcquireNotify of its characteristic with that UUID,
prints the result, and exits.
"""

import asyncio
import sys

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus

ADAPTER = "/org/bluez/hci0"
CHARACTERISTIC = "org.bluez.GattCharacteristic1"


async def call(bus, path, interface, member, signature="", *body):
    message = Message("org.bluez", path, interface, member, signature=signature, body=list(body))
    return await bus.call(message)


async def objects(bus):
    reply = await call(bus, "/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
    return reply.body[0]


async def until(wanted):
    """The value of `wanted()`, once it is true."""
    while True:
        if found := await wanted():
            return found
        await asyncio.sleep(0.1)


async def main(device, uuid):
    bus = await MessageBus(bus_type=BusType.SYSTEM, negotiate_unix_fd=True).connect()
    await call(
        bus, ADAPTER, "org.bluez.Adapter1", "SetDiscoveryFilter", "a{sv}", {"Transport": Variant("s", "le")}
    )
    await call(bus, ADAPTER, "org.bluez.Adapter1", "StartDiscovery")

    async def is_known():
        return device in await objects(bus)

    async def characteristic():
        known = await objects(bus)
        if known[device]["org.bluez.Device1"]["ServicesResolved"].value:
            for path, interfaces in known.items():
                properties = interfaces.get(CHARACTERISTIC)
                if path.startswith(device) and properties and properties["UUID"].value == uuid:
                    return path

    await until(is_known)
    await call(bus, ADAPTER, "org.bluez.Adapter1", "StopDiscovery")
    await call(bus, device, "org.bluez.Device1", "Connect")
    path = await until(characteristic)
    try:
        reply = await asyncio.wait_for(call(bus, path, CHARACTERISTIC, "AcquireNotify", "a{sv}", {}), 10)
    except asyncio.TimeoutError:
        print("no answer", flush=True)
    else:
        print(reply.error_name if reply.message_type == MessageType.ERROR else "a socket", flush=True)


asyncio.run(main(*sys.argv[1:]))
