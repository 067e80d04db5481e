#!/usr/bin/env python3
"""Makes a table and a picture of comparisons, from what `treering perf … --versus … --json` wrote.

    report.py RESULT.json… [--picture FILE.svg]

The table, in Markdown, goes to standard output. The picture has a column for each collective, number
of ranks and distance of the cores: time above, bus bandwidth below, both by size; the dashed line is
the bound by the machine's copy bandwidth. Results with registered and with plain buffers may be given
together; they must be of one machine.
"""

import argparse
import collections
import json
import pathlib
import sys
from typing import Iterator, NamedTuple

OURS = {True: "Treering, registered", False: "Treering, plain"}
COLOURS = {
    OURS[True]: "tab:red",
    OURS[False]: "tab:orange",
    "openmpi": "tab:blue",
    "mpich": "tab:green",
    "intelmpi": "tab:purple",
    "oneccl": "tab:brown",
    "gloo": "tab:gray",
}


class Panel(NamedTuple):
    """What shares one pair of axes."""

    collective: str
    ranks: int
    distance: str


def read(files: list[pathlib.Path]) -> tuple[dict, list[dict]]:
    """The first run, and the rows of all."""
    runs = [json.loads(file.read_text()) for file in files]
    for file, run in zip(files, runs):
        if "peer_versions" not in run:
            sys.exit(f"{file} is not from a comparison: run treering perf with --versus.")
        if (run["host"], run["cpu"]) != (runs[0]["host"], runs[0]["cpu"]):
            sys.exit(f"{file} is from another machine than {files[0]}.")
    return runs[0], [row for run in runs for row in run["rows"]]


def size_text(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def machine(run: dict) -> str:
    versions = sorted(run["peer_versions"].items())
    peers = [f"{name}: {text.splitlines()[0].split(', package')[0]}" for name, text in versions]
    return "\n".join([f"{run['cpu']}, {run['cpus']} cores. Treering {run['version']}.", *peers])


def table(rows: list[dict]) -> Iterator[str]:
    peers = sorted({peer for row in rows for peer in row["peers"]})
    yield f"| collective | ranks | buffers | cores | size | Treering | {' | '.join(peers)} | bound | best | ratio |"
    yield "|---" * (9 + len(peers) + 1) + "|"
    for row in rows:
        times = [number(row["peers"][peer]["time_us"]) if peer in row["peers"] else "–" for peer in peers]
        ratio = "–"
        if row["ratio"] is not None:
            ratio = f"**{row['ratio']:.2f}** ({row['ratio_low']:.2f}–{row['ratio_high']:.2f})"
        cells = [
            row["collective"],
            str(row["ranks"]),
            "registered" if row["registered"] else "plain",
            row["distance"],
            size_text(row["size"]),
            number(row["out_of_place"]["time_us"]),
            *times,
            number(row["memcpy_bound_us"]),
            row["best_peer"] or "–",
            ratio,
        ]
        yield f"| {' | '.join(cells)} |"


def lines_of(rows: list[dict]) -> dict[str, dict[int, float]]:
    """Times by size, for Treering and each peer; of several results for one size the last."""
    lines: dict[str, dict[int, float]] = collections.defaultdict(dict)
    for row in rows:
        lines[OURS[row["registered"]]][row["size"]] = row["out_of_place"]["time_us"]
        for peer, result in row["peers"].items():
            lines[peer][row["size"]] = result["time_us"]
        lines["bound"][row["size"]] = row["memcpy_bound_us"]
    return lines


def bus_bytes(row: dict) -> float:
    """Bytes that cross the bus, as busbw counts them."""
    return row["out_of_place"]["busbw_GBps"] * row["out_of_place"]["time_us"] * 1e3


def draw(axes: list, panel: Panel, rows: list[dict]) -> None:
    times, bandwidths = axes
    moved = {row["size"]: bus_bytes(row) for row in rows}
    for name, line in sorted(lines_of(rows).items()):
        sizes = sorted(line)
        style = {"color": "black", "ls": "--"} if name == "bound" else {"marker": ".", "color": COLOURS.get(name)}
        times.plot(sizes, [line[size] for size in sizes], label=name, **style)
        bandwidths.plot(sizes, [moved[size] / line[size] / 1e3 for size in sizes], label=name, **style)
    times.set_title(f"{panel.collective}, {panel.ranks} ranks, cores {panel.distance}")
    times.set_ylabel("time (µs)")
    bandwidths.set_ylabel("busbw (GB/s)")
    bandwidths.set_xlabel("size")
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.xaxis.set_major_formatter(lambda size, _: size_text(int(size)))
        axis.grid(True, alpha=0.3)


def picture(run: dict, rows: list[dict], file: pathlib.Path) -> None:
    panels: dict[Panel, list[dict]] = collections.defaultdict(list)
    for row in rows:
        if row["size"] > 0:
            panels[Panel(row["collective"], row["ranks"], row["distance"])].append(row)
    import matplotlib  # only a picture needs it

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(panels), figsize=(6 * len(panels), 9), squeeze=False)
    for column, (panel, of_panel) in enumerate(panels.items()):
        draw(list(axes[:, column]), panel, of_panel)
    axes[0][0].legend()
    figure.text(0.01, 0.005, machine(run), fontsize=7)
    figure.tight_layout(rect=(0, 0.03 + 0.012 * len(run["peer_versions"]), 1, 1))
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path)
    arguments = parser.parse_args()
    run, rows = read(arguments.results)
    if not rows:
        sys.exit("There are no rows: no class of rounds occurred often enough.")
    print(machine(run).replace("\n", "  \n") + "\n")
    print("\n".join(table(rows)))
    if arguments.picture:
        picture(run, rows, arguments.picture)


if __name__ == "__main__":
    main()
