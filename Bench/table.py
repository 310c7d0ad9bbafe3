"""Makes the table of scripts/bench out of what Bench/observer.c printed.

    table.py RESULTS MACHINE PROGRAM…

RESULTS has a line for each thing measured: program, TAB, number of micro:bits, TAB, the observer's line. The first
program is the one that the others are compared with.
"""
import os
import sys
from statistics import median


def read(path):
    """{(program, micro:bits, what): [{name: value}, …]} in the order of the runs."""
    table = {}
    with open(path) as file:
        for line in file:
            program, count, text = line.rstrip("\n").split("\t")
            what, *pairs = text.split()
            values = {name: float(value) for name, value in (pair.split("=") for pair in pairs)}
            table.setdefault((program, int(count), what), []).append(values)
    return table


def values(runs, name):
    return [run[name] for run in runs if name in run]


def cell(runs, name, base, form="{:.1f}"):
    """The median over the runs, and how many times the first program's it is."""
    mine, theirs = values(runs, name), values(base, name)
    text = form.format(median(mine))
    if runs is base or not theirs or not median(theirs):
        return text
    return f"{text} ({median(mine) / median(theirs):.2f}×)"


def spread(runs, name):
    """Half of the way from the least to the greatest, in per cent of the median."""
    numbers = values(runs, name)
    return f"±{50 * (max(numbers) - min(numbers)) / median(numbers):.0f} %" if median(numbers) else "–"


def show(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    print()


def starts(table, programs):
    rows = []
    for program in programs:
        runs, base = table[program, 1, "start"], table[programs[0], 1, "start"]
        runs, base = ([run for run in some if "all_ms" not in run] for some in (runs, base))
        times = values(runs, "first_ms")
        # The middle depends on who else wants a processor; the least shows what the program itself needs.
        rows.append([program, cell(runs, "first_ms", base), f"{min(times):.1f}–{max(times):.1f}",
                     cell(runs, "first_cpu_ms", base)])
    print(f"From fork to the first reading at the subscriber, 1 micro:bit, {len(times)} starts")
    show(["", "ms", "least–most", "CPU ms till then"], rows)


def steady(table, programs, counts):
    rows, repeats = [], 0
    for count in counts:
        for program in programs:
            runs, base = ([run for run in table[name, count, "steady"] if run["period"] == 100][:repeats or None]
                          for name in (program, programs[0]))
            commands, base_commands = table[program, count, "commands"], table[programs[0], count, "commands"]
            # The runs with commands come first, the climb to the highest rate last.
            runs, base = runs[:len(commands)], base[:len(base_commands)]
            memory, base_memory = table[program, count, "memory"], table[programs[0], count, "memory"]
            memory = memory[:len(commands)]
            missing = sum(values(runs, "lost")) + sum(values(runs, "dropped"))
            unanswered = sum(values(commands, "sent")) - sum(values(commands, "applied"))
            rows.append([
                str(count) if program == programs[0] else "", program,
                cell(runs, "cpu_us", base), spread(runs, "cpu_us"), cell(runs, "wakes", base, "{:.2f}"),
                cell(runs, "p50", base, "{:.0f}"), cell(runs, "p99", base, "{:.0f}"),
                cell(commands, "p50", base_commands, "{:.0f}"), cell(commands, "p99", base_commands, "{:.0f}"),
                f"{median(values(memory, 'rss')) / 1024:.1f}", f"{median(values(memory, 'peak')) / 1024:.1f}",
                f"{missing:.0f}" + (f", {unanswered:.0f} commands" if unanswered else "")])
            repeats_here = len(commands)
    print(f"10 Hz each, medians of {repeats_here}; µs a notification, µs from the notification to the subscriber, µs "
          "from a\nperiod command to its confirmation, MiB")
    show(["micro:bits", "", "CPU", "spread", "waits", "p50", "p99", "command p50", "p99", "RSS", "peak", "lost"], rows)


def requests(table, programs, counts):
    rows = []
    for count in counts:
        for program in programs[1:]:
            runs, starts = table[program, count, "requests"], table[program, count, "start"]
            unanswered = sum(values(runs, "sent")) - sum(values(runs, "answered"))
            rows.append([
                str(count) if program == programs[1] else "", program,
                *(f"{median(values(runs, name)) / 1000:.2f}" for name in ("p50", "p99")),
                f"{median(values(starts, 'all_ms')):.0f}", f"{median(values(starts, 'discovery_ms')):.0f}",
                f"{unanswered:.0f}"])
    print(f"Requests for the list of devices at 10 Hz each, ms, and ms from fork to the first readings of all and to "
          f"their\nannouncements to Home Assistant, medians of {len(runs)}")
    show(["micro:bits", "", "p50", "p99", "readings", "announcements", "unanswered"], rows)


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
        elif "unanswered" in end:
            reason = "a command was not answered"
        elif end["lost"] or end["dropped"]:
            reason = f"{end['lost']:.0f} lost, {end['dropped']:.0f} did not fit the socket"
        else:
            reason = f"fell behind, p99 {end['p99'] / 1000:.0f} ms"
        if last:
            shares = [f"{last[name]:.0f}" for name in
                      ("cpu_program", "cpu_simulator", "cpu_broker", "cpu_observer", "cpu_foreign")]
            rows.append([program, f"{last['received']:,.0f}", f"{last['cpu_us']:.1f}", f"{last['p99'] / 1000:.1f}",
                         *shares, reason if "sent" not in end else f"{end['sent']:,.0f}/s: {reason}"])
        else:
            rows.append([program, "none", "", "", "", "", "", "", "", reason])
    print(f"The highest rate without loss and without a backlog, {count} micro:bits; who used how much of a core (%) "
          "there, and\nwhat became of the next higher rate")
    show(["", "1/s", "CPU µs", "p99 ms", "it", "simulator", "broker", "observer", "others", "next"], rows)


def main(path, machine, *programs):
    table = read(path)
    counts = sorted({count for _, count, what in table if what == "commands"})
    print()
    starts(table, programs)
    steady(table, programs, counts)
    requests(table, programs, counts)
    if any(what == "rate" for _, _, what in table):
        climb(table, programs)
    foreign = [run["cpu_foreign"] for (_, _, what), runs in table.items() if what == "steady" for run in runs]
    print(f"Noise: {os.cpu_count()} processors; other programs used {median(foreign):.0f} % of one meanwhile (at least "
          f"{min(foreign):.0f}, at most {max(foreign):.0f});\n{machine}.")
    if median(foreign) > 20:
        print("This machine was busy with other things: latencies and start times above say little, ratios of CPU more.")


main(*sys.argv[1:])
