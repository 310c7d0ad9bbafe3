"""A gateway with two adapters of the same bluetoothd."""

from journal import expect
from scenarios.common import BY_PREFIX, CONNECT, RETURN, scenario
from world import BASE, GATEWAY_ID

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
