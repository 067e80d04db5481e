#!/usr/bin/env python3
"""Makes a folder that can be taken to a machine with a GPU driver and nothing of ours.

    bundle.py PROGRAM FOLDER [--architectures "80 90 100"]

The folder holds the program, stripped; `run`, which starts it; and a README. Fails if the program
needs a shared library other than those of the C library, or the folder is too large.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

LARGEST = 40 << 20
C_LIBRARY = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
             "ld-linux-aarch64.so.1"}

RUN = """#!/bin/sh
# Asks the GPUs of this machine; options as of the program (--help). Results: gpu-check-results, here.
exec "$(dirname "$0")/treering-gpu-check" --output gpu-check-results "$@"
"""

README = """treering-gpu-check: what a GPU does, and whether Treering is right on it.

    ./run            at most 6 minutes; results in ./gpu-check-results
    ./run --quick    about half of it
    ./run --list     what is asked

Needs: Linux, glibc {glibc} or newer, {driver}. Nothing is installed,
nothing is left behind but the results. With compute-sanitizer in PATH or /usr/local/cuda/bin, the
kernels run under it too; with nvidia-cuda-mps-control, MPS is tried for some seconds.

Bring back the whole folder gpu-check-results. Built for: {kind}.
"""


def needed_libraries(program: pathlib.Path) -> set[str]:
    headers = subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"NEEDED\s+(\S+)", headers))


def oldest_glibc(program: pathlib.Path) -> str:
    symbols = subprocess.run(["objdump", "-T", program], capture_output=True, text=True, check=True).stdout
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)
    return ".".join(max(versions, key=lambda version: (int(version[0]), int(version[1]))))


def bundle(program: pathlib.Path, folder: pathlib.Path, architectures: str) -> None:
    foreign = needed_libraries(program) - C_LIBRARY
    if foreign:
        sys.exit(f"{program} needs {', '.join(sorted(foreign))}, which other machines may lack.")
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty.")
    folder.mkdir(parents=True, exist_ok=True)
    inside = folder / "treering-gpu-check"
    shutil.copy2(program, inside)
    subprocess.run(["strip", inside], check=True)
    (folder / "run").write_text(RUN)
    (folder / "run").chmod(0o755)
    kind = f"GPUs of sm_{', sm_'.join(architectures.split())}" if architectures else "the host only, no GPU"
    driver = "an NVIDIA driver for CUDA 13" if architectures else "nothing else"
    text = README.format(glibc=oldest_glibc(inside), kind=kind, driver=driver)
    (folder / "README").write_text(text)
    size = sum(file.stat().st_size for file in folder.iterdir())
    if size > LARGEST:
        sys.exit(f"{folder} has {size} bytes; {LARGEST} are allowed.")
    print(f"{folder}: {size / (1 << 20):.1f} MiB for {kind}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--architectures", default="")
    arguments = parser.parse_args()
    bundle(arguments.program, arguments.folder, arguments.architectures)


if __name__ == "__main__":
    main()
