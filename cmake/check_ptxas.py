#!/usr/bin/env python3
"""Checks what the CUDA compiler made of the kernels.

    check_ptxas.py --record DIR nvcc ARGUMENTS…   compiles, and keeps ptxas's report in DIR/ptxas.log
    check_ptxas.py --check DIR                    prints a table; fails if a kernel breaks a rule

The rules, for every architecture:
  - no spills and no stack: a first launch that needs more local memory than there is waits for running
    kernels, which may be waiting for it;
  - a block's registers fit an SM;
  - no non-coherent load, no read-modify-write, no sequentially consistent fence in the PTX: peers write what
    kernels read, flags have one writer, and the fence is paid for at every poll.
"""

import argparse
import pathlib
import re
import subprocess
import sys

REGISTERS_OF_AN_SM = 65536
REGISTER_GRANULE = 8  # per thread
TYPES = pathlib.Path(__file__).parent.parent / "base/include/treering/types.hpp"

# At the start of a PTX instruction, which may have a predicate.
FORBIDDEN = {
    "non-coherent load": r"(ld\.global[\w.:]*\.nc|ldu|tex|tld4)\b",
    "read-modify-write": r"(atom|red)\.",
    "seq_cst fence": r"(fence\.sc|membar)\b",
}


def record(folder: pathlib.Path, command: list[str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.ptx"):
        old.unlink()
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    (folder / "ptxas.log").write_text(result.stderr)
    if result.returncode != 0 or "warning" in result.stderr:
        sys.stderr.write(result.stderr)
    return result.returncode


def enumerators(name: str) -> list[str]:
    body = re.search(rf"enum class {name}\b[^{{]*{{([^}}]*)}}", TYPES.read_text()).group(1)
    body = re.sub(r"//.*", "", body)
    return [word.strip() for word in body.split(",") if word.strip()]


def readable(symbol: str) -> str:
    """entry<Collective, Algorithm, WireType>, mangled, in the words of types.hpp; of other functions the name."""
    numbers = re.search(r"CollectiveE(\d+).*AlgorithmE(\d+).*WireTypeE(\d+)", symbol)
    if not numbers:
        length, rest = re.match(r"_ZN8treering(\d+)(\w+)", symbol).groups()
        return f"({rest[: int(length)]})"
    return " ".join(
        enumerators(kind)[int(number)]
        for kind, number in zip(("Collective", "Algorithm", "WireType"), numbers.groups())
    )


def threads_of_entries(ptx: str) -> dict[tuple[str, str], int]:
    """By architecture and symbol, for entries with launch bounds."""
    architecture = re.search(r"^\.target (\w+)", ptx, re.MULTILINE).group(1)
    pattern = r"\.entry (\w+)\([^)]*\)\s*(?:\.\w+ [^\n]*\n)*?\.maxntid (\d+)"
    return {(architecture, symbol): int(threads) for symbol, threads in re.findall(pattern, ptx)}


def functions_of_report(report: str):
    """Yields (architecture, symbol, stack, spills, registers) of every function; registers of entries only."""
    compiling = re.split(r"Compiling entry function '(\w+)' for '(\w+)'", report)
    for symbol, architecture, text in zip(compiling[1::3], compiling[2::3], compiling[3::3]):
        registers = int(re.search(r"Used (\d+) registers", text).group(1))
        functions = re.findall(
            r"Function properties for (\S+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", text
        )
        for function, stack, stores, loads in functions:
            yield architecture, function, int(stack), int(stores) + int(loads), (
                registers if function == symbol else None
            )


def check(folder: pathlib.Path) -> list[str]:
    wrong = []
    threads = {}
    for path in sorted(folder.glob("*.ptx")):
        ptx = path.read_text()
        threads |= threads_of_entries(ptx)
        for what, pattern in FORBIDDEN.items():
            for line in re.findall(rf"^\s*(?:@!?%p\d+\s+)?((?:{pattern}).*)$", ptx, re.MULTILINE):
                wrong.append(f"{path.name}: {what}: {line[0]}")
    if not threads:
        wrong.append(f"no kernels in the PTX files of {folder}")

    print(f"{'kernel':32} {'for':8} {'registers':>9} {'threads':>7} {'stack':>5} {'spills':>6}")
    rows = sorted(set(functions_of_report((folder / "ptxas.log").read_text())), key=str)
    for architecture, symbol, stack, spills, registers in rows:
        kernel = readable(symbol)
        count = threads.get((architecture, symbol), 0)
        print(f"{kernel:32} {architecture:8} {registers or '':>9} {count or '':>7} {stack:5} {spills:6}")
        if stack or spills:
            wrong.append(f"{kernel} for {architecture}: {stack} bytes of stack, {spills} of spills")
        if registers is None:
            continue
        if not count:
            wrong.append(f"{kernel} for {architecture}: no launch bounds")
        whole = -(-registers // REGISTER_GRANULE) * REGISTER_GRANULE
        if whole * count > REGISTERS_OF_AN_SM:
            wrong.append(f"{kernel} for {architecture}: a block needs {whole * count} registers")
    if not rows:
        wrong.append(f"nothing in {folder / 'ptxas.log'}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--record", metavar="DIR", type=pathlib.Path)
    mode.add_argument("--check", metavar="DIR", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.record:
        return record(arguments.record, arguments.command)
    wrong = check(arguments.check)
    for line in wrong:
        print(line, file=sys.stderr)
    print("wrong" if wrong else "all rules kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
