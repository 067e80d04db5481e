#!/usr/bin/env python3
"""`treering perf --versus` from outside: who is named and why, and that nothing is left behind.

    versus_test.py PROGRAM FAKE [unittest options]

FAKE is the program rank_tests, which can live as a fake peer (tests/ranks/fake_peer.hpp).
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
FAKE = pathlib.Path(sys.argv.pop(1)).resolve()
NAMES = ["openmpi", "mpich", "intelmpi", "oneccl", "gloo", "nccl"]


def script(behaviour: str) -> str:
    """What a peer's launcher is: called with the number of ranks and an address."""
    return (
        f'#!/bin/sh\nrank=0\nwhile [ "$rank" -lt "$1" ]; do\n'
        f'  "{FAKE}" --fake-peer {behaviour} "$2" "$rank" &\n  rank=$((rank + 1))\ndone\nwait\n'
    )


class Versus:
    """One run of `treering perf` with fake peers: launchers by name, as scripts."""

    def __init__(self, collective: str, *options: str, **launchers: str) -> None:
        with tempfile.TemporaryDirectory(prefix="versus-") as name:
            folder = pathlib.Path(name)
            for peer, text in launchers.items():
                (folder / peer).write_text(text)
                (folder / peer).chmod(0o755)
            result = folder / "result.json"
            self.process = subprocess.run(
                [PROGRAM, "perf", collective, "--json", result, "--peers-folder", folder, *options],
                capture_output=True,
                text=True,
                env={**os.environ, "TREERING_DEVICE": "host"},
            )
            self.status = self.process.returncode
            self.output = self.process.stdout + self.process.stderr
            self.result = json.loads(result.read_text()) if result.exists() else None


def processes_with(word: str) -> list[str]:
    lines = subprocess.run(["ps", "-e", "-o", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if word in line]


class CommandLine(unittest.TestCase):
    def test_unknown_names_are_refused_with_those_there_are(self) -> None:
        run = Versus("all_reduce", "--versus", "gloo,lammpi")
        self.assertEqual(run.status, 2)
        self.assertIn("'lammpi'", run.output)
        for name in NAMES:
            self.assertIn(name, run.output)

    def test_what_makes_no_sense_is_refused(self) -> None:
        for options in (["--threads"], ["--ranks", "1"], ["--rounds", "0"]):
            self.assertEqual(Versus("all_reduce", "--versus", "gloo", *options).status, 2, options)
        self.assertEqual(Versus("all_reduce", "--rounds", "3").status, 2, "no comparison, no rounds")

    def test_nobody_found_is_an_error_that_says_what_to_do(self) -> None:
        run = Versus("all_reduce", "--versus", "all")
        self.assertEqual(run.status, 1)
        self.assertIn("There is no peer to compare with", run.output)
        self.assertEqual(run.output.count("./dev setup --peers"), 5)
        self.assertIn("nccl: works on GPUs only", run.output)


class Killed(unittest.TestCase):
    def test_ranks_end_when_the_command_is_gone(self) -> None:
        """Also those that are inside a call that does not return."""
        with tempfile.TemporaryDirectory(prefix="versus-") as folder:
            launcher = pathlib.Path(folder) / "gloo"
            launcher.write_text(script("silent"))
            launcher.chmod(0o755)
            command = subprocess.Popen(
                [PROGRAM, "perf", "barrier", "--versus", "gloo", "--peers-folder", folder],
                stdout=subprocess.PIPE,
                env={**os.environ, "TREERING_DEVICE": "host"},
            )
            for line in command.stdout:  # the table begins when everybody is there
                if b"fake of 2" in line:
                    break
            self.assertNotEqual(processes_with("--fake-peer silent"), [])
            command.kill()
            command.wait()
            command.stdout.close()
            deadline = time.monotonic() + 30
            while processes_with("--fake-peer silent") + processes_with("--contender"):
                self.assertLess(time.monotonic(), deadline, "still there")
                time.sleep(0.05)


class Peers(unittest.TestCase):
    def test_good_and_bad_ones_in_one_run(self) -> None:
        options = ["-b", "8", "-e", "64", "-n", "2", "--rounds", "4", "--versus", "all"]
        run = Versus(
            "broadcast",
            *options,
            gloo=script("cannot"),
            mpich=script("dies"),
            openmpi=script("wrong"),
            oneccl=script("quits"),
        )
        self.assertEqual(run.status, 0, run.output)
        left_out = run.result["peers_unavailable"]
        self.assertIn("setup --peers", left_out["intelmpi"])
        self.assertRegex(left_out["mpich"], "mpich: rank 1 ended")
        self.assertRegex(left_out["openmpi"], "2 elements of its broadcast of 8 bytes are wrong")
        self.assertRegex(left_out["oneccl"], "has ended before its ranks were there; it printed: .*no licence")
        self.assertNotIn("gloo", left_out)
        self.assertEqual(run.result["peer_versions"]["gloo"], "fake of 2")
        for row in run.result["rows"]:
            self.assertEqual(row["peers"], {})
            self.assertIsNone(row["ratio"])
            self.assertEqual(row["out_of_place"]["wrong"], 0)
        for peer in left_out:
            self.assertIn(peer, run.output)
        self.assertEqual(processes_with("--fake-peer"), [])
        self.assertEqual(processes_with("--contender"), [])

    def test_every_round_is_in_a_row_or_accounted_for(self) -> None:
        run = Versus("barrier", "--versus", "gloo", "--rounds", "9", gloo=script("good"))
        self.assertEqual(run.status, 0, run.output)
        measured = [row["rounds"] for row in run.result["rows"]]
        missing = [gap["rounds"] for gap in run.result["unmeasured"]]
        self.assertEqual(len(measured) + len(missing), 2, "near and far")
        self.assertLessEqual(sum(measured) + sum(missing), 9)
        for row in run.result["rows"]:
            self.assertEqual(row["rounds"] + row["dropped_rounds"] + sum(missing), 9)
            self.assertEqual(row["best_peer"], "gloo")
            self.assertGreater(row["ratio"], 0)
            self.assertLessEqual(row["ratio_low"], row["ratio"])
            self.assertLessEqual(row["ratio"], row["ratio_high"])


if __name__ == "__main__":
    unittest.main()
