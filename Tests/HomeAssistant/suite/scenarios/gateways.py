"""Two gateways, one Home Assistant."""

import signal

from annex import Annex
from house import CONNECT, GATEWAY_ID, MOMENT
from journal import expect
from scenarios.availability import ids
from scenarios.common import scenario
from scenarios.removal import GATEWAY_REMOVED


@scenario(accepts=GATEWAY_REMOVED)
def microbit_moves_to_another_gateway_and_back(house):
    """It keeps its page and its entities; only "connected via" and its availability follow its gateway."""
    room = house.rooms[0]
    before, entities = room.device["id"], ids(room.entities)
    annex = Annex(house, room)

    def expect_it_is_via(device):
        room.until_via(device)
        expect(room.device["id"] == before, "it is another device")
        expect(ids(room.entities) == entities, f"its entities are {ids(room.entities)}")

    try:
        annex.start_gateway()
        house.home_assistant.until("the other gateway is there", lambda: annex.device, CONNECT)
        expect_it_is_via(lambda: house.gateway_device)
        room.until_online()

        house.microbits.ask("vanish", room.index)
        room.until("Connectivity", "off", CONNECT)
        annex.microbits.ask("return")
        room.until_online()
        expect_it_is_via(lambda: annex.device)
        house.home_assistant.call("number", "set_value", room.entity("Measuring interval")["entity_id"], value=1500)
        room.until("Measuring interval", "1500")
        expect(annex.microbits.period(0) == 1500, "the micro:bit does not hold it")

        # What it has announced is stored a moment later.
        house.home_assistant.until(
            "its announcement is stored", lambda: annex.has_stored("home_assistant/gateway"), MOMENT)
        annex.gateway.end(signal.SIGKILL)
        room.until("Temperature", "unavailable")
        expect(house.rooms[1].shows("Connectivity") == "on", "the other gateway's went away too")
        # A micro:bit has one link: bluetoothd would keep that of a gateway that was killed.
        annex.microbits.ask("vanish")
        annex.microbits.ask("disconnect")
        house.microbits.ask("return", room.index)
        room.until_online()
        expect_it_is_via(lambda: house.gateway_device)
        # The desired value has moved with it.
        room.until("Measuring interval", "1500")

        # With discovery switched off, the other gateway removes only its own announcements.
        annex.configure(discovery=False)
        mark = house.broker.messages.mark()
        annex.start_gateway()
        house.home_assistant.until("the other gateway is gone", lambda: annex.device is None, CONNECT)
        room.until_online()
        expect_it_is_via(lambda: house.gateway_device)
        told = [m for m in house.broker.messages.since(mark) if m.topic == room.discovery_topic]
        expect(not any(not m.payload for m in told), f"it was taken back: {told}")
        house.home_assistant.call("number", "set_value", room.entity("Measuring interval")["entity_id"], value=1000)
        room.until("Measuring interval", "1000")
    finally:
        annex.leave()
    expect(house.gateway.runs, f"{GATEWAY_ID} ended")
