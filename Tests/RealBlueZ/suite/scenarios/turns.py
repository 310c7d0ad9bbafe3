"""More micro:bits than links: they take turns."""

from journal import expect
from scenarios.common import BY_PREFIX, CONNECT, scenario

MICROBITS = 10
LINKS = 4
STAY = 30
# Three rounds for ten micro:bits, with the time for making and ending the links.
CYCLE = 3 * (STAY + 15)


@scenario(debians=(12, 13))
def more_microbits_than_links(world):
    world.start(microbits=MICROBITS)
    devices = world.devices()
    always = devices[0]
    entry = {"match": {"identifier": always.address}, "connect": "always"}
    world.start_gateway([entry] + BY_PREFIX, bluetooth={"links": LINKS, "stay": STAY})
    for device in devices:
        device.wait_availability("online", 2 * CYCLE)
    mark = world.broker.messages.mark()

    # Each has another turn, and stays online in between; the first one keeps its link.
    for device in devices[1:]:
        start = world.broker.messages.mark()
        device.wait("info", CYCLE, lambda m: "turn" in m.json(), after=start, what="info with turn")
        start = world.broker.messages.mark()
        device.wait("readings", CYCLE, after=start)
        linked = sum(state["connected"] for state in world.microbits.all())
        expect(linked <= LINKS, f"{linked} links")
    for device in devices:
        changes = [m.payload for m in world.broker.on(device.topic("availability"), mark)]
        expect("offline" not in changes, f"{device.id}: {changes}")
    readings = [m.json()["sequence"] for m in world.broker.on(always.topic("readings"), mark)]
    expect(readings == list(range(readings[0], readings[-1] + 1)), "readings of the first one are missing")

    # A command for one that waits.
    waiting = next(i for i, state in enumerate(world.microbits.all()) if not state["connected"])
    device = devices[waiting]
    mark = world.broker.messages.mark()
    device.set_period("1500")
    device.wait_result("applied", CONNECT, after=mark)
    expect(world.microbits.ask("state", waiting)["period"] == 1500, "the micro:bit holds another period")
