"""Pairing: what bluetoothd reports, and what the gateway does."""

import json
import signal
import time

from journal import Failed, expect
from scenarios.common import ALL, CONNECT, RETURN, expect_return, scenario
from scenarios.service_changed import ADAPTER, BOTH, CHARACTERISTIC, QUIET, expect_as_recorded
from world import BASE, GATEWAY_ID, START, TEMPERATURE

PAIR = 45
"""Seconds from a request to pair to its answer."""
LOST = 600
"""Until a key that the kernel has lost is replaced or told: each link takes 60 s, and one that bluetoothd 5.66 ends at
random does not count."""


class Pairer:
    """A program other than the gateway that pairs with the first micro:bit."""

    def __init__(self, world):
        from bus import Bus  # it needs dbus-fast, which the guest alone has

        self.world = world
        self.device = f"{ADAPTER}/dev_" + world.microbits.all()[0]["address"].replace(":", "_")
        self.bus = Bus(self.device)
        self.find()

    def find(self):
        mark = self.bus.events.mark()
        self.bus.call(ADAPTER, "Adapter1.StartDiscovery")
        self.bus.wait("InterfacesAdded", CONNECT, "micro:bit", mark)
        self.bus.call(ADAPTER, "Adapter1.StopDiscovery")
        time.sleep(QUIET)

    def tell(self, op, **more):
        self.bus.record("*", op, *(f"{key}={value}" for key, value in more.items()))
        self.world.microbits.ask(op, **more)

    def call(self, member, within=60):
        """Calls a method; continues if there is no answer in time."""
        mark = self.bus.events.mark()
        self.bus.begin(self.device, "Device1." + member)
        try:
            self.bus.wait(f"<\tA\t{member}", within, "answer", mark)
        except Failed:
            self.bus.record("*", "no answer")
        time.sleep(QUIET)

    def disconnect(self):
        self.call("Disconnect")

    def read(self):
        path = self.bus.characteristics()[TEMPERATURE]
        self.bus.call(path, f"{CHARACTERISTIC}.ReadValue", "a{sv}", {})

    def remove(self):
        self.bus.call(ADAPTER, "Adapter1.RemoveDevice", "o", self.device)
        time.sleep(QUIET)
        self.find()


@scenario(debians=BOTH, old_kernel=BOTH)
def pairing(world):
    """What bluetoothd reports about pairing, compared with ../../recordings, which were made on kernel 6.1: with 7.2
    bluetoothd deletes a micro:bit that is out of range when its pairing is cancelled."""
    world.start()
    session = Pairer(world)
    bus = session.bus
    mark = bus.events.mark()
    session.tell("security", mode="just_works")
    session.call("Pair")  # without an agent
    session.disconnect()
    bus.register_agent("KeyboardOnly")
    for how in ("error", "drop"):
        session.tell("fail", step="pair", how=how)
        session.call("Pair")
    session.tell("fail", step="pair", how="silence")
    session.call("Pair", within=5)
    session.call("CancelPairing")
    session.tell("vanish")
    session.call("Pair", within=50)
    session.call("CancelPairing")
    session.tell("return")
    session.call("Pair")
    session.call("Pair", within=50)  # it is paired already
    session.disconnect()
    session.call("Connect")
    session.read()
    session.disconnect()
    # The bond is lost.
    session.tell("forget")
    for _ in range(2):
        session.call("Connect")
        time.sleep(10)
    session.call("Pair", within=50)
    session.disconnect()
    session.remove()

    session.tell("security", mode="passkey")
    session.call("Pair")  # the agent refuses
    session.disconnect()
    displayed = lambda: world.microbits.ask("state")["passkey"]  # noqa: E731
    bus.passkey = lambda: (displayed() + 1) % 1000000
    session.call("Pair")
    bus.passkey = displayed
    session.call("Pair")
    session.read()
    # bluetoothd puts several changes into one signal or not, before or after an answer, as it happens.
    expect_as_recorded(session, "pairing", mark, without=("/service", "Interfaces"), signals=False)


def start(world, mode, pairs=True, **entry):
    """Starts everything, with one micro:bit in the security mode `mode`."""
    world.start()
    world.microbits.ask("security", mode=mode, pairs=pairs)
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}} | entry])
    return world.devices()[0]


def request(world, verb, device, **more):
    """Sends a request; returns a function that waits for the answer."""
    topic = f"{BASE}/bridge/{GATEWAY_ID}"
    mark = world.broker.messages.mark()
    world.broker.publish(f"{topic}/request/device/{verb}", json.dumps({"id": device.id} | more))

    def answer(within=PAIR):
        return world.broker.wait(f"{topic}/response/device/{verb}", within, after=mark).json()

    return answer


def expect_paired(world, device, after=0, within=CONNECT):
    device.wait_availability("online", within, after=after)
    device.wait_readings(1, CONNECT)
    state = world.microbits.ask("state")
    expect(state["encrypted"] and state["bonds"] == 1, f"not paired: {state}")


def expect_refused(answer, reason):
    expect(answer["status"] == "error" and reason in answer["error"], f"answered {answer}")


def pair(world, device, within=PAIR):
    """By a request, without a passkey."""
    mark = world.broker.messages.mark()
    answer = request(world, "pair", device)(within)
    expect(answer.get("data") == {"paired": True}, f"answered {answer}")
    expect_paired(world, device, mark)


def pair_with_passkey(world, device):
    answer = request(world, "pair", device)()
    expect(answer.get("data") == {"paired": False, "passkey_required": True}, f"answered {answer}")
    passkey = world.microbits.ask("state")["passkey"]
    answer = request(world, "pair", device, passkey=passkey)()
    expect(answer.get("data") == {"paired": True}, f"answered {answer}")


@scenario(debians=BOTH)
def pairs_before_anything_else(world):
    device = start(world, "just_works", pair=True)
    expect_paired(world, device)
    expect(world.microbits.ask("state")["links"] == 1, "there was a link before")
    mark = world.broker.messages.mark()
    answer = request(world, "unpair", device)()
    expect(answer.get("data") == {"paired": False}, f"answered {answer}")
    device.wait_availability("offline", CONNECT, after=mark)


def pairing_suggested(world):
    """The log says how to pair."""
    suggestion = "pair: sudo microbit-gateway pair "
    world.gateway.output.wait(lambda line: suggestion in line, 3 * RETURN, "advice to pair")


@scenario(debians=BOTH)
def pairs_by_request(world):
    device = start(world, "just_works")
    pairing_suggested(world)
    expect(world.microbits.ask("state")["bonds"] == 0, "paired by itself")
    pair(world, device)
    answer = request(world, "pair", device)()
    expect(answer.get("data") == {"paired": True}, f"again answered {answer}")


@scenario(debians=BOTH)
def pairs_with_a_passkey(world):
    device = start(world, "passkey")
    pairing_suggested(world)
    for _ in range(3):
        expect(request(world, "pair", device)()["data"]["passkey_required"], "no passkey is required")
        displayed = world.microbits.ask("state")["passkey"]
        expect_refused(request(world, "pair", device, passkey=(displayed + 1) % 1000000)(), "wrong passkey")
    expect(request(world, "pair", device)()["data"]["passkey_required"], "no passkey is required")
    world.gateway.wait_line("was not entered in time", PAIR)
    mark = world.broker.messages.mark()
    pair_with_passkey(world, device)
    expect_paired(world, device, mark)


@scenario(debians=BOTH)
def passkey_excludes_just_works(world):
    device = start(world, "just_works")
    pairing_suggested(world)
    answer = request(world, "pair", device, passkey=123456)()
    expect_refused(answer, "does not ask for the passkey")
    expect_no_bond(world)
    pair(world, device)


def expect_no_bond(world):
    status, bonds = world.run_gateway("bonds", within=START)
    expect(status == 0 and not bonds, f"status {status}, bonds: {bonds}")


def keyboards():
    """The input devices of this machine that are a virtual peripheral's."""
    with open("/proc/bus/input/devices") as file:
        return [line for line in file if "micro:bit" in line]


def expect_no_keyboard(world, seconds):
    """None for that long, not even for a moment, and then no bond."""
    for _ in range(20 * seconds):
        expect(not keyboards(), f"input devices: {keyboards()}")
        time.sleep(0.05)
    expect(world.gateway.said("it offers to be a keyboard or mouse"), "the keyboard was not told")
    expect_no_bond(world)


def start_keyboard(world, **entry):
    """It has a micro:bit's name, pairs with anybody, and shows its HID service on a link only."""
    world.start(services=("temperature", "keyboard"))
    world.microbits.ask("security", mode="just_works")
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}} | entry])


@scenario(debians=BOTH)
def keyboard_is_not_paired_with(world):
    start_keyboard(world, pair=True)
    expect_no_keyboard(world, 240)


@scenario(debians=BOTH)
def keyboard_is_not_used(world):
    """bluetoothd may pair with it by itself as soon as it is connected."""
    start_keyboard(world)
    expect_no_keyboard(world, 240)


@scenario(debians=BOTH)
def becomes_a_keyboard(world):
    """It adds the HID service after it was paired with."""
    device = start(world, "just_works")
    pairing_suggested(world)
    pair(world, device)
    mark = world.broker.messages.mark()
    world.microbits.ask("serve", services=["temperature", "keyboard"], changed=[1, 0xFFFF])
    expect_no_keyboard(world, 60)
    expect(world.broker.on(device.topic("availability"), mark), "it is still used")


@scenario(debians=BOTH)
def keyboard_of_another_program(world):
    """It was paired with on purpose: it stays a keyboard, and its temperature is read."""
    world.start(services=("temperature", "keyboard"))
    world.microbits.ask("security", mode="just_works")
    session = Pairer(world)
    session.bus.register_agent("KeyboardOnly")
    session.call("Pair")
    expect(keyboards(), "it is no input device")
    session.disconnect()
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}}])
    expect_paired(world, world.devices()[0])


@scenario(debians=BOTH)
def pairing_fails(world):
    """The micro:bit refuses; the link drops; it stops responding; it is out of range."""
    device = start(world, "just_works", pairs=False)
    pairing_suggested(world)
    expect_refused(request(world, "pair", device)(), "refuses")
    for how, reason in (("drop", "the link ended"), ("silence", "the link ended")):
        world.microbits.ask("security", mode="just_works")
        world.microbits.ask("fail", step="pair", how=how)
        expect_refused(request(world, "pair", device)(), reason)
    pair(world, device)


@scenario(debians=ALL)
def bond_lost(world):
    device = start(world, "just_works", pair=True)
    expect_paired(world, device)
    mark = world.broker.messages.mark()
    world.microbits.ask("forget")
    world.microbits.ask("reset")
    device.wait_availability("offline", CONNECT, after=mark)
    device.wait_availability("online", 3 * RETURN, after=mark)
    expect_paired(world, device, mark)
    expect(world.gateway.said("has lost its pairing"), "the lost pairing was not told")


@scenario(debians=BOTH, old_kernel=(12,))
def bond_lost_and_told(world):
    """With kernel 7.2, bluetoothd 5.66 often answers Connect with br-connection-canceled, as when the signal is weak: so
    it is only told that the bond may be lost."""
    device = start(world, "just_works")
    pairing_suggested(world)
    request(world, "pair", device)()
    expect_paired(world, device)
    world.microbits.ask("forget")
    world.microbits.ask("reset")
    world.gateway.wait_line("has lost its pairing", 3 * RETURN)
    expect(world.microbits.ask("state")["bonds"] == 0, "paired by itself")
    pair(world, device)


def lose_key(world, device):
    """Another program cancels a pairing while the micro:bit is out of range: the kernel forgets its key, bluetoothd does
    not. Returns a mark in the messages."""
    from bus import Bus

    path = f"{ADAPTER}/dev_" + world.microbits.all()[0]["address"].replace(":", "_")
    mark = world.broker.messages.mark()
    world.microbits.ask("vanish")
    device.wait_availability("offline", RETURN, after=mark)
    Bus(path).call(path, "Device1.CancelPairing")
    mark = world.broker.messages.mark()
    world.microbits.ask("return")
    return mark


@scenario(debians=ALL)
def key_lost_by_the_kernel(world):
    device = start(world, "just_works", pair=True)
    expect_paired(world, device)
    mark = lose_key(world, device)
    expect_paired(world, device, mark, within=LOST)
    expect(world.gateway.said("has lost its pairing"), "the lost pairing was not told")


@scenario(debians=ALL)
def key_lost_by_the_kernel_and_told(world):
    device = start(world, "just_works")
    pairing_suggested(world)
    pair(world, device)
    lose_key(world, device)
    world.gateway.wait_line("its pairing may be lost", LOST)
    world.gateway.wait_line("has lost its pairing", LOST)
    expect(sum(" paired device" in line for line in world.gateway.output.since()) == 1, "paired by itself")
    pair(world, device)
    # A request replaces the pairing as soon as the first link has failed, also while the next one is tried.
    lines = world.gateway.output.mark()
    lose_key(world, device)
    world.gateway.output.wait(lambda line: "its pairing may be lost" in line, LOST, "lost pairing", lines)
    time.sleep(5)
    pair(world, device, within=2 * RETURN)


@scenario(debians=ALL)
def bond_of_a_wedged_one(world):
    """It keeps its links, but answers nothing for some minutes: the bond is kept."""
    device = start(world, "just_works", pair=True)
    expect_paired(world, device)
    mark = world.broker.messages.mark()
    world.microbits.ask("wedged", on=True)
    world.microbits.ask("silent", on=True)
    device.wait_availability("offline", 2 * RETURN, after=mark)
    time.sleep(600)
    world.microbits.ask("wedged", on=False)
    world.microbits.ask("silent", on=False)
    expect_paired(world, device, mark, within=3 * RETURN)
    expect(world.microbits.ask("state")["pairings"] == 1, "paired again")


@scenario(debians=BOTH)
def bond_of_a_slow_one(world):
    """It answers each request, but the services take most of a minute: the bond is kept."""
    device = start(world, "just_works", pair=True)
    expect_paired(world, device)
    mark = world.broker.messages.mark()
    world.microbits.ask("slow", seconds=6)
    world.microbits.ask("disconnect")
    device.wait_availability("offline", RETURN, after=mark)
    time.sleep(600)
    state = world.microbits.ask("slow", seconds=0)
    expect(state["pairings"] == 1 and state["bonds"] == 1, f"paired again: {state}")


@scenario(debians=BOTH)
def bond_lasts(world):
    """A bond survives restarts of the micro:bit, of bluetoothd and of the gateway."""
    device = start(world, "just_works", pair=True)
    expect_paired(world, device)
    mark = world.broker.messages.mark()
    world.microbits.ask("reset")
    device.wait_availability("offline", CONNECT, after=mark)
    expect_return(device, mark)
    mark = world.broker.messages.mark()
    world.restart_bluetoothd()
    device.wait_availability("offline", CONNECT, after=mark)
    expect_return(device, mark)
    world.gateway.kill(signal.SIGTERM)
    world.gateway.wait_end(START)
    mark = world.broker.messages.mark()
    world.start_gateway([{"match": {"name_prefix": "BBC micro:bit"}}])
    expect_paired(world, device, mark)
    expect(world.microbits.ask("state")["pairings"] == 1, "paired again")


@scenario(debians=BOTH)
def bonded_and_switched_off(world):
    """It is tried less and less often, so that it does not delay others, and connected at once when it is back."""
    device = start(world, "just_works", pair=True)
    expect_paired(world, device)
    world.broker.publish(f"{BASE}/bridge/{GATEWAY_ID}/request/log_level", '{"level":"debug"}')
    mark = world.broker.messages.mark()
    world.microbits.ask("vanish")
    device.wait_availability("offline", CONNECT, after=mark)
    lines = world.gateway.output.mark()
    time.sleep(900)
    attempts = sum("connecting device" in line for line in world.gateway.output.since(lines))
    expect(2 <= attempts <= 8, f"tried {attempts} times in 15 minutes")
    mark = world.broker.messages.mark()
    world.microbits.ask("return")
    device.wait_availability("online", CONNECT, after=mark)
    expect_paired(world, device, mark)


@scenario(debians=BOTH)
def other_services_in_the_same_handles(world):
    """A reflashed micro:bit, which bluetoothd would serve from its cache."""
    device = start(world, "open")
    device.wait_availability("online", CONNECT)
    world.microbits.ask("vanish")
    device.wait_availability("offline", CONNECT)
    world.microbits.ask("serve", services=["temperature_reversed"], changed=None)
    mark = world.broker.messages.mark()
    world.microbits.ask("return")
    expect_return(device, mark)
