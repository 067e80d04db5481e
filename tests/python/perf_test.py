#!/usr/bin/env python3
"""`treering perf` from outside: its exit status, and what it says where nothing can be measured.

    perf_test.py PROGRAM [unittest options]
"""

import os
import pathlib
import subprocess
import sys
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()


def perf(*options: str, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PROGRAM, "perf", *options],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TREERING_DEVICE": "host", **environment},
    )


class ExitStatus(unittest.TestCase):
    def expect_not_understood(self, run: subprocess.CompletedProcess, *words: str) -> None:
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def test_of_right_results_is_0(self) -> None:
        run = perf("all_gather", "-e", "8", "-n", "1")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("all_gather", run.stdout)

    def test_of_what_is_not_understood_is_2(self) -> None:
        self.expect_not_understood(perf("all_reduce", "--algorithm", "direct"), "there are: two_shot")
        self.expect_not_understood(perf("barrier", "--wire", "ll"), "there are: simple")
        self.expect_not_understood(perf("barrier", TREERING_DEVICE="tpu"), "TREERING_DEVICE=tpu", "`host`")
        self.expect_not_understood(perf("barrier", TREERING_DEVICE="simt"), "--threads")
        self.expect_not_understood(perf("barrier", TREERING_SLOT="-1"), "TREERING_SLOT=-1")

    def test_of_results_that_cannot_be_written_is_1(self) -> None:
        with open("/dev/full", "w") as full:
            run = perf("barrier", "-n", "1", stdout=full.fileno())
        self.assertEqual(run.returncode, 1)
        self.assertIn("No space left on device", run.stderr)


if __name__ == "__main__":
    unittest.main()
