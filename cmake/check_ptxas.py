#!/usr/bin/env python3
"""Checks what the CUDA compiler made of the kernels.

    check_ptxas.py --record DIR nvcc ARGUMENTS…   compiles, and keeps ptxas's report in DIR/ptxas.log
    check_ptxas.py --check DIR                    prints a table; fails if a kernel breaks a rule

The rules, for every architecture:
  - no spills and no stack: a first launch that needs more local memory than there is waits for running
    kernels, which may be waiting for it;
  - launch bounds are those of the launches, and an SM holds at least one such block by its registers, threads
    and shared memory: grids are planned as many blocks as run at the same time, because blocks wait for each
    other;
  - no non-coherent load, no read-modify-write, no sequentially consistent fence in the PTX: peers write what
    kernels read, flags have one writer, and the fence is paid for at every poll.
"""

import argparse
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parent.parent
TYPES = ROOT / "base/include/treering/types.hpp"
LAUNCH = ROOT / "kernels/exec/cuda/launch.hpp"
BLOCK_THREADS = int(re.search(r"block_threads = (\d+);", LAUNCH.read_text()).group(1))


class Limits(NamedTuple):
    """What an SM offers to its blocks (CUDA programming guide, compute capabilities)."""

    threads: int
    shared: int  # bytes
    blocks: int
    registers: int = 65536


LIMITS = {
    "sm_80": Limits(threads=2048, shared=164 << 10, blocks=32),
    "sm_86": Limits(threads=1536, shared=100 << 10, blocks=16),
    "sm_89": Limits(threads=1536, shared=100 << 10, blocks=24),
    "sm_90": Limits(threads=2048, shared=228 << 10, blocks=32),
    "sm_100": Limits(threads=2048, shared=228 << 10, blocks=32),
    "sm_103": Limits(threads=2048, shared=228 << 10, blocks=32),
    "sm_120": Limits(threads=1536, shared=100 << 10, blocks=24),
}
REGISTER_GRANULE = 8  # per thread
WARP_GRANULE = 4  # registers are given to so many warps at once
SYSTEM_SHARED = 1024  # of each block

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


class Function(NamedTuple):
    """One function as ptxas reports it; registers and shared memory of entries only."""

    architecture: str
    symbol: str
    stack: int
    spills: int
    registers: int | None
    shared: int


def functions_of_report(report: str):
    compiling = re.split(r"Compiling entry function '(\w+)' for '(\w+)'", report)
    for symbol, architecture, text in zip(compiling[1::3], compiling[2::3], compiling[3::3]):
        registers = int(re.search(r"Used (\d+) registers", text).group(1))
        shared = re.search(r"(\d+) bytes smem", text)
        functions = re.findall(
            r"Function properties for (\S+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", text
        )
        for function, stack, stores, loads in functions:
            is_entry = function == symbol
            yield Function(
                architecture,
                function,
                int(stack),
                int(stores) + int(loads),
                registers if is_entry else None,
                int(shared.group(1)) if is_entry and shared else 0,
            )


def blocks_of_an_sm(limits: Limits, threads: int, registers: int, shared: int) -> int:
    """How many blocks run on an SM at the same time."""
    warps = -(-threads // 32)
    warps = -(-warps // WARP_GRANULE) * WARP_GRANULE
    each = -(-registers // REGISTER_GRANULE) * REGISTER_GRANULE
    return min(
        limits.blocks,
        limits.threads // threads,
        limits.registers // (warps * 32 * each),
        limits.shared // (shared + SYSTEM_SHARED),
    )


def wrong_with(function: Function, threads: int) -> list[str]:
    """What is wrong with one function; empty if nothing is. `threads`: its launch bounds, 0 without."""
    where = f"{readable(function.symbol)} for {function.architecture}"
    wrong = []
    if function.stack or function.spills:
        wrong.append(f"{where}: {function.stack} bytes of stack, {function.spills} of spills")
    if function.registers is None:
        return wrong
    limits = LIMITS.get(function.architecture)
    if not threads:
        wrong.append(f"{where}: no launch bounds")
    elif threads != BLOCK_THREADS:
        wrong.append(f"{where}: launch bounds of {threads} threads, but it is launched with {BLOCK_THREADS}")
    elif limits is None:
        wrong.append(f"{where}: what an SM of {function.architecture} offers is not in LIMITS")
    elif blocks_of_an_sm(limits, threads, function.registers, function.shared) < 1:
        wrong.append(f"{where}: an SM cannot hold a block of {threads} threads × {function.registers} registers")
    return wrong


def print_row(function: Function, threads: int) -> None:
    limits = LIMITS.get(function.architecture)
    blocks = (
        blocks_of_an_sm(limits, threads, function.registers, function.shared)
        if limits and threads and function.registers
        else ""
    )
    print(
        f"{readable(function.symbol):36} {function.architecture:8} {function.registers or '':>9} {threads or '':>7}"
        f" {function.shared or '':>6} {blocks:>9} {function.stack:5} {function.spills:6}"
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

    print(
        f"{'kernel':36} {'for':8} {'registers':>9} {'threads':>7} {'shared':>6} {'blocks/SM':>9}"
        f" {'stack':>5} {'spills':>6}"
    )
    rows = sorted(set(functions_of_report((folder / "ptxas.log").read_text())), key=str)
    for function in rows:
        count = threads.get((function.architecture, function.symbol), 0)
        print_row(function, count)
        wrong += wrong_with(function, count)
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
