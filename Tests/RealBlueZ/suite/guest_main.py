"""Runs one scenario in the guest: guest_main.py SCENARIO GATEWAY.

Exit status: 0 passed; 1 failed, with the evidence on stdout.
"""

import os
import sys
import time
import traceback

from journal import Failed
from scenarios import scenarios
from world import World


def tail(title, lines, count=20):
    if lines:
        print(f"  {title}:")
        for line in lines[-count:]:
            print(f"    {line}")


def evidence(world):
    if world.gateway:
        tail("gateway", world.gateway.output.since())
    elif os.path.exists("/out/gateway.log"):
        tail("gateway", open("/out/gateway.log").read().splitlines())
    if world.broker:
        tail("MQTT", world.broker.messages.since())
    if world.microbits:
        tail("micro:bits", world.microbits.process.output.since(), 10)
    if world.bluetoothd:
        # Without the traffic itself, which bluetoothd.log has.
        chatter = ("can_read_data()", "send_request()")
        tail(
            "bluetoothd",
            [line for line in world.bluetoothd.output.since() if not any(c in line for c in chatter)],
        )


def main():
    name, gateway = sys.argv[1:]
    seed = os.environ["RIG_SEED"]
    world = World(gateway, seed, factor=int(os.environ["RIG_FACTOR"]))
    try:
        scenarios[name](world)
    except Failed as failure:
        print(f"  at {time.monotonic():.3f}: {failure}")
    except Exception:
        print("".join("  " + line for line in traceback.format_exc().splitlines(keepends=True)))
    else:
        return 0
    print(f"  seed {seed}")
    evidence(world)
    return 1


status = main()
sys.stdout.flush()
os._exit(status)  # the guest ends now, with all its programs
