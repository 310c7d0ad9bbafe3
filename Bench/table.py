"""Makes the table of scripts/bench out of what Bench/observer.c printed.

    table.py RESULTS MACHINE PROGRAM…

RESULTS has a line for each thing measured: program, TAB, number of micro:bits, TAB, sensor and rate, TAB, the
observer's line. A program is C, gateway, gateway-defaults or gateway-page; the others are compared with C, if that is there.
"""
import os
import sys
from statistics import median


BASE = "C"
"""The program that the others are compared with."""


def read(path):
    """By sensor and rate: {(program, micro:bits, what): [{name: value}, …]} in the order of the runs."""
    tables = {}
    with open(path) as file:
        for line in file:
            program, count, load, text = line.rstrip("\n").split("\t")
            what, *pairs = text.split()
            values = {name: float(value) for name, value in (pair.split("=") for pair in pairs)}
            tables.setdefault(load, {}).setdefault((program, int(count), what), []).append(values)
    return tables


def values(runs, name):
    return [run[name] for run in runs if name in run]


def title(program):
    return program.replace("-", ", ")


def ratio(table, program, count, what, name, select=lambda runs: runs):
    """The median over the runs and how many times that of the C program it is, or None."""
    mine, theirs = (values(select(table.get((one, count, what), [])), name) for one in (program, BASE))
    if program == BASE or not theirs or not median(theirs):
        return median(mine), None
    return median(mine), median(mine) / median(theirs)


def cell(table, program, count, what, name, form="{:.1f}", select=lambda runs: runs):
    """The same as text."""
    value, times = ratio(table, program, count, what, name, select)
    return form.format(value) + (f" ({times:.2f}×)" if times else "")


def spread(runs, name):
    """Half of the way from the least to the greatest, in per cent of the median."""
    numbers = values(runs, name)
    return f"±{50 * (max(numbers) - min(numbers)) / median(numbers):.0f} %" if median(numbers) else "–"


def show(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    print()


def starts(table, programs, counts):
    def alone(runs):
        return [run for run in runs if "all_ms" not in run]

    def together(runs):
        return [run for run in runs if "all_ms" in run]

    rows, number = [], 0
    for count in [1] + [count for count in counts if count > 1]:
        name, select = ("first", alone) if count == 1 else ("all", together)
        for program in programs:
            one = (table, program, count, "start")
            times = values(select(table[program, count, "start"]), f"{name}_ms")
            # The middle depends on who else wants a processor; the least shows what the program itself needs.
            rows.append([str(count) if program == programs[0] else "", title(program),
                         cell(*one, f"{name}_ms", select=select), f"{min(times):.1f}–{max(times):.1f}",
                         cell(*one, f"{name}_cpu_ms", select=select)])
            number = len(times)
    print("From fork until a first reading of each has come to the subscriber, medians of "
          f"{number} starts")
    show(["micro:bits", "", "ms", "least–most", "CPU ms till then"], rows)


def steady(table, programs, counts, rate):
    rows, number = [], 0
    for count in counts:
        for program in programs:
            runs, commands = table[program, count, "steady"], table[program, count, "commands"]
            missing = sum(values(runs, "lost"))
            unanswered = sum(values(commands, "sent")) - sum(values(commands, "applied"))
            memory = table[program, count, "memory"]
            one = (table, program, count)
            rows.append([
                str(count) if program == programs[0] else "", title(program),
                cell(*one, "steady", "cpu_us"), spread(runs, "cpu_us"), cell(*one, "steady", "wakes", "{:.2f}"),
                cell(*one, "steady", "p50", "{:.0f}"), cell(*one, "steady", "p99", "{:.0f}"),
                cell(*one, "commands", "p50", "{:.0f}"), cell(*one, "commands", "p99", "{:.0f}"),
                *(f"{median(values(memory, name)) / 1024:.1f}" for name in ("private", "pss", "rss", "peak")),
                f"{missing:.0f}" + (f", {unanswered:.0f} commands" if unanswered else "")])
            number = len(commands)
    print(f"{rate} each, medians of {number}; µs a notification, µs from the notification to the "
          "subscriber, µs from a\nperiod command to its confirmation, MiB of memory: private, proportional, resident, and the most that "
          "was\nresident")
    show(["micro:bits", "", "CPU", "spread", "waits", "p50", "p99", "command p50", "p99", "private", "PSS", "RSS",
          "peak", "lost"], rows)


def records(tables, programs):
    """What a record of three numbers costs beside a single number."""
    (simple, table), (record, other) = ((name, tables[name]) for name in
                                        ("temperature at 50 Hz", "accelerometer at 50 Hz"))
    count = next(count for _, count, _ in table)
    rows, number = [], 0
    for name, one in ((simple, table), (record, other)):
        for program in programs:
            if (program, count, "steady") not in one:
                continue
            runs = one[program, count, "steady"]
            key = (program, count, "steady", "cpu_us")
            mine, plain = ratio(one, *key)[1], ratio(table, *key)[1]
            rows.append([
                name if program == programs[0] else "", title(program), cell(one, *key), spread(runs, "cpu_us"),
                f"{mine / plain:.2f}" if mine and plain and one is other else "",
                *(cell(one, *key[:3], quantile, "{:.0f}") for quantile in ("p50", "p99")),
                f"{sum(values(runs, 'lost')):.0f}"])
            number = len(runs)
    print(f"{count} micro:bits at 50 Hz each, medians of {number}; µs as above; \"to temperature\": how "
          "many times\nthat of a temperature the ratio of CPU is")
    show(["", "", "CPU", "spread", "to temperature", "p50", "p99", "lost"], rows)


def requests(table, programs, counts):
    programs, rows, number = [program for program in programs if program != BASE], [], 0
    for count in counts:
        for program in programs:
            runs, starts = table[program, count, "requests"], table[program, count, "start"]
            unanswered = sum(values(runs, "sent")) - sum(values(runs, "answered"))
            rows.append([
                str(count) if program == programs[0] else "", title(program),
                *(f"{median(values(runs, name)) / 1000:.2f}" for name in ("p50", "p99")),
                f"{median(values(starts, 'discovery_ms')):.0f}", f"{unanswered:.0f}"])
            number = len(runs)
    if not rows:
        return
    print(f"Requests for the list of devices at 10 Hz each, ms, and ms from fork to the announcements of all to "
          f"Home\nAssistant, medians of {number}")
    show(["micro:bits", "", "p50", "p99", "announcements", "unanswered"], rows)


def beacons(table):
    """Of senders that are only heard."""
    rows = []
    for (program, count, _), runs in table.items():
        cpu, sent = median(values(runs, "cpu_s")), runs[0]["sent"]
        lost = sum(run["sent"] - run["arrived"] for run in runs)
        rows.append([str(count), title(program), f"{sent:,.0f}", f"{sent / median(values(runs, 'seconds')):.0f}",
                     f"{cpu:.2f}", spread(runs, "cpu_s"), f"{cpu / sent * 1e6:.0f}",
                     f"{median(values(runs, 'private')) / 1024:.1f}", f"{lost:.0f}"])
        number = len(runs)
    print(f"Senders of BTHome that are only heard, three readings in each advertisement, medians of {number}")
    show(["senders", "", "advertisements", "1/s", "CPU s", "spread", "µs each", "private MiB", "lost"], rows)


def climb(table, programs):
    rows = []
    for program in programs:
        count, runs = next((count, runs) for (name, count, what), runs in table.items()
                           if name == program and what == "rate")
        good = [run for run in runs if run.get("good")]
        last = good[-1] if good else None
        end = runs[-1]
        if end.get("good"):
            reason = "no higher one was tried"
        elif end["lost"]:
            reason = f"{end['lost']:.0f} lost"
        else:
            reason = f"fell behind, p99 {end['p99'] / 1000:.0f} ms"
        if last:
            shares = [f"{last[name]:.0f}" for name in
                      ("cpu_program", "cpu_simulator", "cpu_bus", "cpu_broker", "cpu_observer", "cpu_foreign")]
            rows.append([title(program), f"{last['received']:,.0f}", f"{last['cpu_us']:.1f}", f"{last['p99'] / 1000:.1f}",
                         *shares, reason if "sent" not in end else f"{end['sent']:,.0f}/s: {reason}"])
        else:
            rows.append([title(program), "none", *[""] * 8, reason])
    print(f"The highest rate without loss and without a backlog, {count} micro:bits; who used how much of a core (%) "
          "there, and\nwhat became of the next higher rate")
    show(["", "1/s", "CPU µs", "p99 ms", "it", "simulator", "bus", "broker", "observer", "others", "next"], rows)


def main(path, machine, *programs):
    tables = read(path)
    heard = tables.pop("beacons", None)
    load, table = next(iter(tables.items()))
    # Each program's climb to the highest rate comes after its other runs, and has a row of its own.
    for (program, count, what), runs in table.items():
        if what in ("steady", "memory"):
            del runs[len(table.get((program, count, "commands"), [])):]
    counts = sorted({count for _, count, what in table if what == "commands"})
    print()
    starts(table, programs, counts)
    steady(table, programs, counts, load.removeprefix("temperature at "))
    if len(tables) > 1:
        records(tables, programs)
    requests(table, programs, counts)
    if heard:
        beacons(heard)
    if any(what == "rate" for _, _, what in table):
        climb(table, programs)
    foreign = [run["cpu_foreign"] for (_, _, what), runs in table.items() if what == "steady" for run in runs]
    print(f"Noise: {os.cpu_count()} processors; other programs used {median(foreign):.0f} % of one meanwhile (at least "
          f"{min(foreign):.0f}, at most {max(foreign):.0f});\n{machine}.")
    if median(foreign) > 20:
        print("This machine was busy with other things: latencies and start times above say little, ratios of CPU more.")


main(*sys.argv[1:])
