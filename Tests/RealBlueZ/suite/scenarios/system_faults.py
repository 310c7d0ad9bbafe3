"""Adapter, bluetoothd, broker or the gateway itself fail or start late."""

import signal
import time

from journal import expect
from scenarios.common import ALL, ANSWER, BY_PREFIX, CONNECT, RETURN, expect_return, scenario, start_one
from world import BASE, GATEWAY_ID, START, Broker, Microbits

BOTH = (12, 13)


def start_two(world):
    world.start(microbits=2)
    world.start_gateway(BY_PREFIX)
    devices = world.devices()
    for device in devices:
        device.wait_availability("online", 2 * CONNECT)
    return devices


@scenario()
def adapter_off_and_on(world):
    devices = start_two(world)
    mark = world.broker.messages.mark()
    world.set_powered(False)
    for device in devices:
        device.wait_availability("offline", RETURN, after=mark)
    time.sleep(20)  # the adapter is off for that long
    mark = world.broker.messages.mark()
    world.set_powered(True)
    for device in devices:
        expect_return(device, mark)
    expect(world.gateway.child.poll() is None, "the gateway ended")


@scenario()
def adapter_unplugged(world):
    device = start_one(world)
    mark = world.broker.messages.mark()
    world.microbits.unplug()
    device.wait_availability("offline", RETURN, after=mark)
    mark = world.broker.messages.mark()
    world.microbits = Microbits(1)
    expect_return(device, mark)


def expect_reset(world):
    """The gateway reports that it cannot scan, and after about a minute it resets the adapter."""
    world.gateway.wait_line("cannot scan: trying again", 2 * RETURN)

    def tells_recovery(message):
        return message.json()["adapters"][0].get("recovery", {}).get("step") == "retry"

    world.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/info", ANSWER, tells_recovery, what="recovery in info")
    world.broker.publish(f"{BASE}/bridge/{GATEWAY_ID}/request/health", "")
    health = world.broker.wait(f"{BASE}/bridge/{GATEWAY_ID}/response/health", ANSWER).json()["data"]
    texts = [finding["text"] for finding in health["findings"]]
    expect(any(text.startswith("hci0 cannot scan") for text in texts), f"health reports {texts}")
    world.gateway.wait_line("resetting the adapter", 2 * RETURN)
    device = world.devices()[0]
    device.wait_availability("online", RETURN)
    device.wait_readings(1, RETURN)


@scenario(debians=BOTH)
def scans_refused_from_the_start(world):
    world.start()
    world.microbits.ask("refuse_scans")
    world.start_gateway(BY_PREFIX)
    expect_reset(world)


@scenario(debians=ALL)
def scan_that_reports_is_not_restarted(world):
    """The controller reports each peripheral once in a round of 10.24 s, in which nothing changes but its strength."""
    world.start(strangers=3)
    world.microbits.ask("vanish")
    world.listen_to_bus()
    world.start_gateway(BY_PREFIX)
    time.sleep(200)
    starts = [line for line in world.bus.output.since() if "member=StartDiscovery" in line]
    expect(len(starts) == 1, f"{len(starts)} calls of StartDiscovery")


@scenario(debians=ALL)
def scans_refused_later(world):
    """bluetoothd reports that it discovers."""
    world.start()
    world.microbits.ask("vanish")
    world.start_gateway(BY_PREFIX)
    time.sleep(20)  # it scans for that long
    world.microbits.ask("refuse_scans")
    time.sleep(20)  # the kernel's scan has ended
    world.microbits.ask("return")
    expect_reset(world)


@scenario()
def bluetoothd_killed(world):
    devices = start_two(world)
    mark = world.broker.messages.mark()
    world.bluetoothd.kill(signal.SIGKILL)
    world.bluetoothd.wait_end(START)
    for device in devices:
        device.wait_availability("offline", RETURN, after=mark)
    time.sleep(20)  # bluetoothd is absent for that long
    mark = world.broker.messages.mark()
    world.start_bluetoothd()
    for device in devices:
        expect_return(device, mark)
    expect(world.gateway.child.poll() is None, "the gateway ended")


@scenario()
def bluetoothd_killed_and_back_at_once(world):
    """The kernel keeps the links for another 2 s: a Connect meanwhile succeeds, and then they end."""
    devices = start_two(world)
    mark = world.broker.messages.mark()
    world.bluetoothd.kill(signal.SIGKILL)
    world.bluetoothd.wait_end(START)
    world.start_bluetoothd()
    for device in devices:
        device.wait_availability("offline", RETURN, after=mark)
    for device in devices:
        device.wait_readings(10, RETURN)  # more than the old link could still send


@scenario()
def gateway_starts_before_all_else(world):
    """Without bluetoothd, adapter and broker: it waits for them."""
    world.start_gateway(BY_PREFIX)
    time.sleep(20)  # for that long
    expect(world.gateway.child.poll() is None, "the gateway has ended")
    world.broker = Broker()
    time.sleep(5)
    world.start_bluetoothd(adapter=False)
    time.sleep(5)
    world.microbits = Microbits(1)
    device = world.devices()[0]
    device.wait_availability("online", RETURN)
    device.wait_readings(1, RETURN)


@scenario()
def gateway_killed_and_started_again(world):
    """Its MQTT will is published, and the new gateway uses the existing link."""
    device = start_one(world)
    state = f"{BASE}/bridge/{GATEWAY_ID}/state"
    mark = world.broker.messages.mark()
    world.gateway.kill(signal.SIGKILL)
    world.gateway.wait_end(ANSWER)
    world.broker.wait(state, ANSWER, lambda message: message.payload == "offline", mark, "will")
    mark = world.broker.messages.mark()
    world.start_gateway(BY_PREFIX)
    expect_return(device, mark)
    expect(world.microbits.ask("state")["links"] == 1, "the link that was there was not used")
