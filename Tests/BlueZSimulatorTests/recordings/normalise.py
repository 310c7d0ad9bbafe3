#!/usr/bin/env python3
"""Turns what `dbus-monitor --system` saw of a client's session with a real bluetoothd into the form that
ReplayTests reads: one event a line, fields separated by tabs, without times, serials and unique names.

    > CLIENT PATH INTERFACE.MEMBER ARGUMENT…    a call to org.bluez
    < CLIENT MEMBER ok [VALUE] | ERROR TEXT     its answer; with the value for Get, GetAll and ReadValue
    ! PATH PropertiesChanged INTERFACE CHANGED INVALIDATED
    ! PATH InterfacesAdded INTERFACES           (PATH is that of the object)
    ! PATH InterfacesRemoved INTERFACES
    - CLIENT                                    it left the bus
    * OPERATION                                 what befell the micro:bit, from the scenario's own log
    ~                                           one or more notifications of the temperature, by signal

Left out: the characteristics of the recording rig's fault service, and GetManagedObjects.

Usage: normalise.py NAME.dbus.txt NAME.log > NAME.tsv"""

import json
import re
import sys

FAULTS = "/service001b"
TEMPERATURE = "/service0015/char0016"


def messages(path):
    head, body = None, []
    for line in open(path, errors="replace"):
        if re.match(r"(signal|method call|method return|error) ", line):
            if head:
                yield head, body
            head, body = line.strip(), []
        elif head:
            body.append(line.strip())
    if head:
        yield head, body


def values(lines):
    """The arguments, as Python values; ("o", path) and the like where the type matters."""
    position = 0

    def parse(text):
        nonlocal position
        text = text.removeprefix("variant").strip()
        if text.startswith("array of bytes"):
            rest = text[len("array of bytes"):].strip()
            if rest.startswith("["):
                while not rest.endswith("]"):
                    rest += " " + lines[position]
                    position += 1
                return ("ay", rest.strip("[]").replace(" ", ""))
            return ("ay", "".join("%02x" % ord(c) for c in rest.split('"')[1]) + "00" * rest.count("\\0"))
        if text == "array [":
            result = []
            while lines[position] != "]":
                position += 1
                result.append(parse(lines[position - 1]))
            position += 1
            return result
        if text == "dict entry(":
            pair = []
            while lines[position] != ")":
                position += 1
                pair.append(parse(lines[position - 1]))
            position += 1
            return tuple(["entry"] + pair)
        kind, _, rest = text.partition(" ")
        if text.startswith("object path"):
            return ("o", text.split('"')[1])
        if kind == "string":
            while rest.count('"') < 2 or not rest.endswith('"'):
                rest += "\n" + lines[position]
                position += 1
            return ("s", rest[1:-1])
        letter = {"boolean": "b", "int16": "n", "uint16": "q", "int32": "i", "uint32": "u", "byte": "y"}
        if kind in letter:
            return (letter[kind], rest)
        return ("?", text)

    result = []
    while position < len(lines):
        position += 1
        result.append(parse(lines[position - 1]))
    return result


FAULT_UUID = "e95d00f0-251d-470a-a062-fa1922dfa9a8"


def argument(value, key=None):
    """A value as text: its type and what it holds; signal strengths and database hashes, which are different
    each time, without that."""
    if key == "Value" and value == []:
        return "ay:"
    if isinstance(value, list) and all(v[0] == "entry" for v in value):
        return "{" + ";".join(f"{name[1]}={argument(v, name[1])}" for _, name, v in value) + "}"
    if isinstance(value, list):
        return "as:" + ",".join(v[1] for v in value if v[1] != FAULT_UUID)
    kind, text = value
    # -100 is the bound of a filter.
    strength = key == "RSSI" and text != "-100"
    return kind if strength or kind == "ay" and len(text) == 32 else f"{kind}:{text}"


WORLD = {"# SIGTERM": "terminate", "# gone; start": "start", "# adapter pulled": "unplug",
         "# adapter plugged in again": "plug", "client closed the notify fd": "close"}


def operations(log):
    """What befell the micro:bit, each with the replies and signals that the client had seen before."""
    replies = signals = 0
    for line in open(log):
        text = line[10:].strip()
        if text.startswith("=>") and "NO REPLY" not in text:
            replies += 1
        elif text.startswith("SIGNAL"):
            signals += 1
        elif text.startswith("MICROBIT"):
            operation = json.loads(text.removeprefix("MICROBIT"))
            name = operation["op"] + {True: " on", False: " off", None: ""}[operation.get("on")]
            yield replies, signals, name
        elif text in WORLD:
            yield replies, signals, WORLD[text]


def read(monitor):
    """The events, with None in the place of those left out, so that they can be counted."""
    names, pending = {}, {}
    for head, body in messages(monitor):
        sender = re.search(r"sender=(\S+)", head)[1]
        target = re.search(r"destination=(\S+)", head)[1]
        serial = re.search(r" serial=(\d+)|$", head)[1]
        path = re.search(r"path=([^;]+)|$", head)[1]
        member = re.search(r"member=(\S+)|$", head)[1]
        interface = re.search(r"interface=([^;]+)|$", head)[1]
        arguments = values(body)
        if head.startswith("method call") and target == "org.bluez":
            client = names.setdefault(sender, "ABCDEFGH"[len(names)])
            if member == "WriteValue" and arguments[0] == []:
                arguments[0] = ("ay", "")
            pending[sender, serial] = (member, path)
            if kept(path, member):
                yield ">", client, path, f"{interface}.{member}", *map(argument, arguments)
        elif head.startswith(("method return", "error")):
            member, path = pending.pop((target, re.search(r"reply_serial=(\d+)", head)[1]), (None, None))
            if member:
                error = re.search(r"error_name=(\S+)", head)
                outcome = (error[1], arguments[0][1].strip()) if error else ("ok",)
                if not error and member in ("Get", "GetAll", "ReadValue"):
                    outcome += (argument(arguments[0]),)
                yield ("<", names[target], member, *outcome) if kept(path, member) else ("<", None)
        elif member == "NameOwnerChanged":
            name, _, new = (v[1] for v in arguments)
            if name == "org.bluez":
                yield "!", None
            elif name in names and not new:
                yield "-", names[name]
        elif head.startswith("signal") and sender.startswith(":") and names:
            if member == "PropertiesChanged":
                event = ("!", path, member, arguments[0][1], argument(arguments[1]),
                         ",".join(v[1] for v in arguments[2]))
            else:
                path = arguments[0][1]
                event = ("!", path, member, argument(arguments[1]))
            yield event if kept(path, member) else ("!", None)


def kept(path, member):
    return FAULTS not in path and member != "GetManagedObjects"


def main(monitor, log):
    events = list(read(monitor))
    positions = {kind: [i for i, event in enumerate(events) if event[0] == kind] for kind in "<!"}
    placed = []
    for replies, signals, name in operations(log):
        after = max([-1] + positions["<"][:replies][-1:] + positions["!"][:signals][-1:])
        # The recorder's own tidying up at the end is no part of the session.
        if any(event[0] == ">" and "RemoveDevice" not in event[3] for event in events[after + 1:]):
            placed.append((after + 1, name))
    for position, name in reversed(placed):
        events.insert(position, ("*", name))
    quiet = True
    for i, event in enumerate(events):
        value = len(event) > 4 and event[1].endswith(TEMPERATURE) and event[4].startswith("{Value=")
        answered = i + 1 < len(events) and events[i + 1][0] == "<" and "ReadValue" in events[i + 1]
        if value and not answered:
            if quiet:
                print("~")
            quiet = False
        elif event[1] is not None:
            print("\t".join(event))
            quiet = True


main(*sys.argv[1:])
