#!/usr/bin/env python3
"""How far Treering's own choices are from the best that can be forced: `treering perf all --forced-choices` for several
numbers of ranks, with registered buffers and with plain ones, and what comes of all of them together.

    perf/choices.py build/bin/treering                        # 2 to 8 ranks, 8 B to 64 MiB: some twenty minutes
    perf/choices.py build/bin/treering --ranks 2-4 -e 1M -f 4
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

CLOSE, FAR = 1.15, 1.5


def range_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def understand() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="the command treering")
    parser.add_argument("--collective", default="all")
    parser.add_argument("--ranks", type=range_of, default=range(2, 9), help="such as 4 or 2-8 (2-8)")
    parser.add_argument("--registered", choices=["0", "1"], help="only plain (0) or registered (1) buffers (both)")
    parser.add_argument("-b", "--minbytes", default="8")
    parser.add_argument("-e", "--maxbytes", default="64M")
    parser.add_argument("-f", "--stepfactor", default="2")
    return parser.parse_args()


def rows_of(asked: argparse.Namespace, ranks: int, registered: str) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        sizes = ["-b", asked.minbytes, "-e", asked.maxbytes, "-f", asked.stepfactor]
        how = ["--forced-choices", "--ranks", str(ranks), "--registered", registered, "--json", str(result)]
        subprocess.run([asked.program, "perf", asked.collective, *sizes, *how], check=True)
        return json.loads(result.read_text())["rows"]


def summary(what: str, rows: list[dict]) -> str:
    ratios = [row["ratio"] for row in rows]
    worst = max(rows, key=lambda row: row["ratio"])
    return (
        f"{what:<22} {len(rows):>5} cases  within 15 %: {100 * sum(r <= CLOSE for r in ratios) / len(rows):5.1f} %  "
        f"over 1.5: {sum(r > FAR for r in ratios):>3}  worst {worst['ratio']:.2f} "
        f"({worst['collective']}, {worst['ranks']} ranks, {worst['size']} B: {worst['chosen']}, best {worst['best']})"
    )


def main() -> None:
    asked = understand()
    rows = [
        row
        for ranks in asked.ranks
        for registered in ([asked.registered] if asked.registered else ["1", "0"])
        for row in rows_of(asked, ranks, registered)
    ]
    for ranks in asked.ranks:
        for registered, memory in ((True, "registered"), (False, "plain")):
            some = [row for row in rows if row["ranks"] == ranks and row["registered"] == registered]
            if some:
                print(summary(f"{ranks} ranks, {memory}", some))
    print(summary("all", rows))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
