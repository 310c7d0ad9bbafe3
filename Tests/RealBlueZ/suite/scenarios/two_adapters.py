"""Adapters that go: one of two of the same bluetoothd, and the only one, which comes back."""

import os
import signal
import time

from journal import expect
from scenarios.common import ALL, BY_PREFIX, CONNECT, RETURN, expect_return, scenario
from world import BASE, GATEWAY_ID, START

BOTH = (12, 13)


def wait_adapter(world, within, wanted, after=0):
    """The adapter that the list of devices names, once it is one of `wanted`."""
    message = world.broker.wait(
        f"{BASE}/bridge/{GATEWAY_ID}/devices",
        within,
        lambda message: any(device.get("adapter") in wanted for device in message.json()),
        after,
        "adapter",
    )
    return message.json()[0]["adapter"]


@scenario(debians=BOTH)
def adapter_of_two_unplugged(world):
    """When the adapter with the link is unplugged, the readings go on through the other one."""
    adapters = ["hci0", "hci1"]
    world.start(options=("--second-adapter",))
    world.start_gateway(BY_PREFIX, bluetooth={"adapters": adapters})
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    device.wait_readings(2, CONNECT)
    used = wait_adapter(world, CONNECT, adapters)
    other = adapters[1 - adapters.index(used)]
    mark = world.broker.messages.mark()
    world.microbits.ask("unplug", adapter=adapters.index(used))
    device.wait_availability("offline", RETURN, after=mark)
    device.wait_availability("online", RETURN, after=mark)
    device.wait_readings(10, RETURN)
    expect(wait_adapter(world, CONNECT, [other], mark) == other, "the other adapter is not named")
    expect(world.microbits.all()[0]["links"] >= 2, "there was no second link")


def adapters():
    """The kernel's names."""
    return [name for name in os.listdir("/sys/class/bluetooth") if ":" not in name]


@scenario(debians=ALL)
def adapter_replugged_at_once(world):
    """As a reset on USB does it: with kernel 7.2 it is hci1 if something still holds hci0, and hci0 the next time."""
    world.start()
    world.start_gateway(BY_PREFIX, bluetooth={"adapters": ["hci0"]})
    device = world.devices()[0]
    device.wait_availability("online", CONNECT)
    names = []
    for pause in (0.5, 0.1, 0.01, 0, 0, 0):
        mark = world.broker.messages.mark()
        world.microbits.ask("unplug", adapter=0)
        time.sleep(pause)
        world.microbits.ask("plug", adapter=0)
        device.wait_availability("offline", RETURN, after=mark)
        expect_return(device, mark)
        names += adapters()
    print("it was", ", ".join(names))
    expect("hci1" in names, "it has kept its name: nothing was tested")
    while adapters() != ["hci1"]:
        world.microbits.ask("unplug", adapter=0)
        world.microbits.ask("plug", adapter=0)
        time.sleep(RETURN)
    # The next run of the gateway finds it under that name.
    world.gateway.kill(signal.SIGTERM)
    world.gateway.wait_end(START)
    mark = world.broker.messages.mark()
    world.start_gateway(BY_PREFIX, bluetooth={"adapters": ["hci0"]})
    expect_return(device, mark)
