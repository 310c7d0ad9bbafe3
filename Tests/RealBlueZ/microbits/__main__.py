"""Virtual peripherals within range of the kernel's hci0 (and hci1). Prints "ready" when all advertise.

Control port 127.0.0.1:9000: one JSON object per line, in both directions. "i" is the micro:bit's index, or 0; the other
peripherals (--describe, --weather) follow the micro:bits.
The answer is its state after the operation.
  {"op":"list"}                       the states of all: {"microbits": […], "strangers": […]}
  {"op":"state"}                      name, address, connected, links and unheard connection requests so far,
                                      temperature, period, notified; and of services that are served:
                                      buttons; acceleration, acceleration_period, acceleration_notified;
                                      magnetometer_period, calibrations; rows, texts (all written so far),
                                      scrolling_delay; analog_pins, input_pins, outputs, pulses; uart_read (by
                                      the program), uart_writes (time, length), uart_lost; events_wanted,
                                      events_received; log_requests, log_ignored, log_dropped (other notifications).
                                      Of described ones: writes, by characteristic
  {"op":"unplug","adapter":1}         removes an adapter, as if a USB stick were unplugged; the answer is empty
  {"op":"plug","adapter":1}           adds it again; the answer is empty
  {"op":"most_links","count":3}       hci0 refuses more links than these; the answer is empty
  {"op":"refuse_scans"}               hci0 refuses to scan until it is reset; the answer is empty
  {"op":"crowd","count":1000}         so many addresses advertise as micro:bits, with changing names, and accept no
                                      connection; 0: no more; the answer is empty
  {"op":"beacons","service":"feaa","data":["00ec…"]}  one beacon more for each of these service data; the answer has
                                      the "addresses" of all
  {"op":"beacon","number":0,"data":"00ec…"}  another data of one of them; null: it is silent; the answer is empty
  {"op":"until","state":{…},"within":S}  the same, as soon as the state has these values; an error after S seconds
  {"op":"temperature","value":25}     in whole °C, from the next sample on
  {"op":"button","button":"a","v":1}  0: released, 1: pressed, 2: held; notified if it is another value
  {"op":"acceleration","value":[0,0,-1024]}  x, y, z in mg, from the next sample on
  {"op":"call","service":"uart","method":"send","arguments":["21\\n"]}  a method of that service (services.py), or
                                      without "service" of a described peripheral or the weather station
                                      (described.py)
  {"op":"silent","on":true}           stays connected, sends no notifications
  {"op":"disconnect"}                 the micro:bit ends the link
  {"op":"vanish"}, {"op":"return"}    out of range: its link ends by supervision time-out; and back
  {"op":"reset"}                      its reset button
  {"op":"deaf","on":true}             advertises, but connection requests never reach it
  {"op":"unstable","on":true}         its links fail 50 ms after they start
  {"op":"wedged","on":true}           keeps the link, answers no ATT request
  {"op":"slow","seconds":0.05}        each of its ATT answers takes that long
  {"op":"security","mode":"passkey","pairs":true,"error":5}
                                      "open", or its own services are refused with that ATT error until the link is
                                      encrypted: "just_works", "passkey" (which it displays: "passkey" of the
                                      state). Unless it "pairs", it refuses to. The state has "encrypted", "bonds",
                                      and "pairings", how often it was asked to pair
  {"op":"forget"}                     it loses its bonds, as when another program is flashed
  {"op":"serve","services":["temperature","buttons"],"changed":[26,65535]}
                                      its own services are these from now on; it indicates Service Changed with
                                      these handles; null: no indication
  {"op":"fail","step":"subscribe","how":"drop","times":1}
                                      makes the next requests of that step fail. Steps: "resolve",
                                      "read" of the temperature, "subscribe" to it, "pair". How: "drop" of the
                                      link, "error", or "silence": no request is answered from then on (with
                                      "seconds": after which the link ends). The state's "faults" counts them
  {"op":"drop","after":20,"linger":2} the next link falls silent after its 20th packet, and ends 2 s later; "drops"
                                      of the state counts
"""

import argparse
import asyncio
import inspect
import json
import os
import random

from described import Described, WeatherStation
from peripherals import Microbit, Stranger
from radio import Adapter, Air, Beacons, Crowd, Vhci, log
from services import SERVICES


async def operate(peripheral, request):
    on = request.get("on", True)
    match request["op"]:
        case "state":
            pass
        case "until":
            await peripheral.until(request["state"], request["within"])
        case "temperature":
            peripheral.temperature = request["value"]
        case "button":
            await peripheral.extra("buttons").set(request["button"], request["v"])
        case "acceleration":
            peripheral.extra("accelerometer").acceleration = request["value"]
        case "call":
            target = peripheral.extra(request["service"]) if "service" in request else peripheral
            result = getattr(target, request["method"])(*request["arguments"])
            if inspect.isawaitable(result):
                await result
        case "silent":
            peripheral.silent = on
        case "disconnect":
            await peripheral.disconnect()
        case "vanish":
            peripheral.vanish()
        case "return":
            peripheral.come_back()
        case "reset":
            await peripheral.reset()
        case "deaf":
            peripheral.set_deaf(on)
        case "unstable":
            peripheral.set_unstable(on)
        case "wedged":
            peripheral.wedged = on
        case "slow":
            peripheral.delay = request["seconds"]
        case "security":
            peripheral.security = request["mode"]
            peripheral.pairs = request.get("pairs", True)
            peripheral.pairing_error = request.get("error", 5)
        case "forget":
            await peripheral.forget()
        case "serve":
            await peripheral.serve(request["services"], request["changed"])
        case "fail":
            peripheral.fail_next(
                request["step"],
                request["how"],
                request.get("times", 1),
                request.get("seconds"),
            )
        case "drop":
            peripheral.drop_next(request["after"], request["linger"])
        case unknown:
            raise ValueError("no such op: %s" % unknown)
    return peripheral.state()


async def main():
    random.seed(os.environ.get("RIG_SEED"))  # none: a new one each time
    parser = argparse.ArgumentParser(prog="microbits")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--strangers", type=int, default=0)
    parser.add_argument("--model", type=int, choices=(1, 2), default=2, help="of the micro:bits: V1 or V2")
    parser.add_argument("--describe", metavar="FILE", help="a JSON list of other peripherals (described.py)")
    parser.add_argument("--weather", action="store_true", help="a weather station (described.py)")
    parser.add_argument("--second-adapter", action="store_true", help="hci1, in the same air as hci0")
    parser.add_argument(
        "--services", default="temperature", help="comma-separated, of: " + ", ".join(SERVICES)
    )
    arguments = parser.parse_args()
    services = arguments.services.split(",")
    if unknown := set(services) - set(SERVICES):
        parser.error("no such service: " + " ".join(unknown))

    air = Air()
    adapter = Adapter("hci0", link=air, public_address="02:00:5E:00:53:01")
    plugs = [Vhci(adapter)]
    if arguments.second_adapter:
        plugs.append(Vhci(Adapter("hci1", link=air, public_address="02:00:5E:00:53:02")))
    microbits = [Microbit(i, air, adapter, services, arguments.model) for i in range(arguments.count)]
    others = []
    if arguments.describe:
        with open(arguments.describe) as file:
            others = [Described(i, air, adapter, description) for i, description in enumerate(json.load(file))]
    if arguments.weather:
        others.append(WeatherStation(len(others), air, adapter))
    strangers = [Stranger(i, air, adapter) for i in range(arguments.strangers)]
    for peripheral in microbits + others + strangers:
        await peripheral.start()

    crowd = None
    beacons = []

    async def answer(request):
        nonlocal crowd
        if request["op"] == "list":
            kinds = {"microbits": microbits, "others": others, "strangers": strangers}
            return {kind: [p.state() for p in peripherals] for kind, peripherals in kinds.items()}
        if request["op"] == "unplug":
            plugs[request["adapter"]].unplug()
            return {}
        if request["op"] == "plug":
            plugs[request["adapter"]].plug()
            return {}
        if request["op"] == "most_links":
            adapter.most_links = request["count"]
            return {}
        if request["op"] == "refuse_scans":
            adapter.refuses_scans = True
            return {}
        if request["op"] == "crowd":
            if crowd:
                crowd.stop()
            crowd = Crowd(adapter, request["count"], "BBC micro:bit [%s]") if request["count"] else None
            return {}
        if request["op"] == "beacons":
            service = bytes.fromhex(request["service"])[::-1]
            beacons.append(Beacons(adapter, service, [bytes.fromhex(data) for data in request["data"]]))
            return {"addresses": [a.to_string(False) for group in beacons for a in group.addresses]}
        if request["op"] == "beacon":
            beacons[0].data[request["number"]] = request["data"] and bytes.fromhex(request["data"])
            return {}
        return await operate((microbits + others)[request.get("i", 0)], request)

    async def serve(reader, writer):
        while line := await reader.readline():
            log("control", line.decode().strip())
            try:
                reply = await answer(json.loads(line))
            except Exception as error:
                reply = {"error": repr(error)}
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 9000) as server:
        print("ready", flush=True)
        await server.serve_forever()


asyncio.run(main())
