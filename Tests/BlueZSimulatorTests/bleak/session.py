"""A session of an independent client with the simulated bluetoothd: whoever knows BlueZ only by bleak must
find a micro:bit in it. Run with DBUS_SYSTEM_BUS_ADDRESS set; prints a line for every step that went well."""

import asyncio
import sys
import time

from bleak import BleakClient, BleakScanner

TEMPERATURE = "e95d9250-251d-470a-a062-fa1922dfa9a8"
PERIOD = "e95d1b25-251d-470a-a062-fa1922dfa9a8"
# For what must come, in s: a busy machine may take its time.
PATIENCE = 60
MODEL = "00002a24-0000-1000-8000-00805f9b34fb"


async def values(client, count, **options):
    """The next values of the temperature, by notification."""
    queue = asyncio.Queue()
    await client.start_notify(TEMPERATURE, lambda _, data: queue.put_nowait(bytes(data)), **options)
    got = [await asyncio.wait_for(queue.get(), PATIENCE) for _ in range(count)]
    await client.stop_notify(TEMPERATURE)
    return got


def check(what, condition):
    if not condition:
        sys.exit(f"not so: {what}")
    print(f"ok: {what}", flush=True)


async def main():
    found = {}
    end = time.monotonic() + PATIENCE
    while len(found) < 4 and time.monotonic() < end:
        found = await BleakScanner.discover(timeout=1.0, return_adv=True)
    names = sorted(advertisement.local_name for _, advertisement in found.values())
    check("three micro:bits and a stranger are found", len(names) == 4)
    check("they are named so", names[0] == "BBC micro:bit [gagog]" and names[-1] == "Polar H7 1")

    device = await BleakScanner.find_device_by_name("BBC micro:bit [zugev]", timeout=PATIENCE)
    check("one is found by name", device is not None and device.address == "D0:5A:00:00:C0:DE")

    left = asyncio.Event()
    async with BleakClient(device, disconnected_callback=lambda _: left.set(), timeout=PATIENCE) as client:
        check("it is connected", client.is_connected)
        services = [service.uuid[:8] for service in client.services]
        check("its services are there", sorted(services) == ["00001801", "0000180a", "e95d6100"])
        check("the model is read", bytes(await client.read_gatt_char(MODEL)) == b"BBC micro:bit V2")
        temperature = await client.read_gatt_char(TEMPERATURE)
        check("a temperature is read", len(temperature) == 1 and 10 < temperature[0] < 40)

        await client.write_gatt_char(PERIOD, (100).to_bytes(2, "little"), response=True)
        check("the period is read back", bytes(await client.read_gatt_char(PERIOD)) == b"\x64\x00")

        by_socket = await values(client, 5)
        check("values arrive by AcquireNotify", all(len(value) == 1 for value in by_socket))
        by_signal = await values(client, 5, bluez={"use_start_notify": True})
        check("values arrive by StartNotify", all(len(value) == 1 for value in by_signal))

        try:
            await client.write_gatt_char(PERIOD, b"\x01", response=True)
            check("a short write is refused", False)
        except Exception as error:
            check("a short write is refused", "Invalid Length" in str(error))
        check("and changes nothing", bytes(await client.read_gatt_char(PERIOD)) == b"\x64\x00")
    await asyncio.wait_for(left.wait(), PATIENCE)
    check("it is disconnected", not client.is_connected)

    async with BleakClient(device, timeout=PATIENCE) as client:
        check("it is connected again", client.is_connected)
        check("the period has outlived the link", bytes(await client.read_gatt_char(PERIOD)) == b"\x64\x00")
    print("done", flush=True)


asyncio.run(main())
