"""The end of the gateway by a signal, and its scan command."""

import json
import signal
import time

from journal import expect
from scenarios.common import ALL, BY_PREFIX, CONNECT, scenario
from world import BASE, BROKER_PORT, GATEWAY_ID, OUT, Microbits


@scenario()
def ends_in_order(world):
    world.start(microbits=3)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", 3 * CONNECT)
    mark = world.broker.messages.mark()
    begin = time.monotonic()
    world.gateway.kill(signal.SIGTERM)
    status = world.gateway.wait_end(10)
    lasted = time.monotonic() - begin
    expect(status == 0, f"exit status {status}")
    expect(lasted <= 5, f"it took {lasted:.1f} s to end")
    for device in devices:
        device.wait_availability("offline", 1, after=mark)
        world.microbits.until(device.index, 1, connected=False)
    message = world.broker.wait(
        f"{BASE}/bridge/{GATEWAY_ID}/state", 1, lambda m: m.payload == "offline", mark, "offline"
    )
    expect(message.retain, "the bridge's state was not retained")


@scenario()
def scan_lists_microbits(world):
    world.microbits = Microbits(3, strangers=2)
    world.start_bluetoothd()
    status, output = world.run_gateway("scan", "--timeout", "5", "--json", within=30)
    expect(status == 0, f"exit status {status}: {output}")
    found = {item["identifier"]: item["name"] for item in json_items(output)}
    for microbit in world.microbits.all():
        expect(found.get(microbit["address"]) == microbit["name"], f"{microbit['name']} is not in {output}")
        expect(microbit["links"] == 0, "scan connected")
    status, output = world.run_gateway("scan", "--timeout", "5", within=30)
    expect(status == 0, f"exit status {status}: {output}")
    for microbit in world.microbits.all():
        expect(
            microbit["name"] in output and microbit["address"] in output,
            f"{microbit['name']} is not in {output}",
        )


def json_items(text):
    """The objects of a JSON array, or of a text with one object a line."""
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line]
    return whole if isinstance(whole, list) else [whole]


@scenario()
def scan_without_services(world):
    status, output = world.run_gateway("scan", within=60, bus="unix:path=/nowhere")
    expect(status == 69, f"exit status {status} without a bus: {output}")
    status, output = world.run_gateway("scan", within=60)
    expect(status == 69, f"exit status {status} without bluetoothd: {output}")
    world.start_bluetoothd(adapter=False)
    status, output = world.run_gateway("scan", within=60)
    expect(status == 69, f"exit status {status} without an adapter: {output}")


@scenario(debians=ALL)
def init_unblocks_the_adapter(world):
    """Bluetooth is blocked by software, as on a new Raspberry Pi."""
    world.start()
    with open("/dev/rfkill", "wb", buffering=0) as switch:
        switch.write(bytes([0, 0, 0, 0, 2, 3, 1, 0]))  # all of Bluetooth: a soft block
    config = f"{OUT}/config.json"
    status, output = world.run_gateway("doctor", within=60)
    expect("the adapter hci0 is blocked" in output, f"doctor: {output}")
    expect("sudo rfkill unblock bluetooth" in output, f"doctor: {output}")
    options = ("--yes", "--config", config, "--broker", "127.0.0.1", "--port", str(BROKER_PORT))
    status, output = world.run_gateway("init", *options, within=60)
    expect(status == 0 and "Bluetooth is no longer blocked." in output, f"init: {status}: {output}")
    expect("BBC micro:bit" in open(config).read(), f"init does not use every micro:bit: {output}")
