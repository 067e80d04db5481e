#!/usr/bin/env python3
"""The program treering-gpu-check, on the host in place of a GPU: that it asks everything, outlives
every probe, and loses no answer.

    gpu_check_test.py PROGRAM [--bundle BUNDLE.PY] [unittest options]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
BUNDLE = pathlib.Path(__file__).resolve().parents[2] / "perf/gpu_check/bundle.py"
IS_SANITIZED = os.environ.get("GPU_CHECK_SANITIZED") == "1"


class Run:
    """One run of the program, and what it left behind."""

    def __init__(self, *options: str, output: str = "", **variables: str) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-check-"))
        environment = {**os.environ, "TREERING_DEVICE": "host", **variables}
        self.process = subprocess.run(
            [PROGRAM, "--output", output or self.folder, *options],
            capture_output=True,
            text=True,
            env=environment,
        )
        self.status = self.process.returncode

    def items(self) -> dict[str, dict]:
        items = json.loads((self.folder / "result.json").read_text())["items"]
        return {f"{item['item']}@{item['gpu']}": item for item in items}

    def journal(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "answers.jsonl").read_text().splitlines()]

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)


def names_listed() -> list[str]:
    listed = subprocess.run(
        [PROGRAM, "--list"], capture_output=True, text=True, env={**os.environ, "TREERING_DEVICE": "host"}
    )
    return [line.split()[0] for line in listed.stdout.splitlines()]


class Everything(unittest.TestCase):
    """All probes, once, as on a machine with two GPUs and a compute-sanitizer that finds nothing."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.tools = tempfile.TemporaryDirectory()
        tool = pathlib.Path(cls.tools.name) / "compute-sanitizer"
        # compute-sanitizer --tool T --error-exitcode N PROGRAM …
        tool.write_text('#!/bin/sh\necho "$1 $2"; shift 4; exec "$@"\n')
        tool.chmod(0o755)
        path = f"{cls.tools.name}:{os.environ['PATH']}"
        begin = time.monotonic()
        cls.run_ = Run("--deadline", "1100", PATH=path, GPU_CHECK_PRETEND="2")
        cls.seconds = time.monotonic() - begin

    @classmethod
    def tearDownClass(cls) -> None:
        cls.tools.cleanup()
        shutil.rmtree(cls.run_.folder)

    def test_nothing_fails(self) -> None:
        print(f"the whole run took {self.seconds:.1f} s")
        self.assertEqual(self.run_.status, 0, self.run_.process.stdout + self.run_.process.stderr)
        skipped = [name for name, item in self.run_.items().items() if item["status"] == "skipped"]
        self.assertEqual(skipped, ["processes.mps@0"])

    def test_everything_that_is_listed_is_answered(self) -> None:
        asked = {name.split("@")[0] for name in self.run_.items()}
        self.assertEqual(asked, {"machine", *names_listed()})

    def test_each_gpu_is_asked(self) -> None:
        items = self.run_.items()
        for probe in ("facts.device", "copies.ceiling", "hops.one_device"):
            self.assertIn(f"{probe}@0", items)
            self.assertIn(f"{probe}@1", items)

    def test_every_answer_has_a_number_or_a_text(self) -> None:
        for name, item in self.run_.items().items():
            if item["status"] == "ok" and not name.startswith("stuck"):
                self.assertTrue(item["findings"], name)

    def test_numbers_make_sense(self) -> None:
        items = self.run_.items()
        self.assertGreater(items["copies.ceiling@0"]["findings"]["copied_gbps"], 0)
        self.assertGreater(items["hops.one_device@0"]["findings"]["release_relaxed_host_remote_domain_hop_ns"], 0)
        self.assertEqual(items["litmus.handover@0"]["findings"]["stale_words"], 0)
        self.assertEqual(items["litmus.ll128_peers@0"]["findings"]["torn_words"], 0)
        self.assertTrue(items["processes.legacy_ipc@0"]["findings"]["kernels_meet"])
        times = items["times.4@0"]["findings"]
        ratio = times["all_reduce_256 KiB_busbw_gbps"] / times["all_reduce_256 KiB_algbw_gbps"]
        self.assertAlmostEqual(ratio, 1.5, places=4)
        # Four ranks read and write everything: 8 times the size, against a copy's read and write.
        copied = items["copies.ceiling@1"]["findings"]["copied_gbps"]
        expected = 8 * times["all_reduce_256 KiB_algbw_gbps"] / (2 * copied)
        self.assertAlmostEqual(times["all_reduce_256 KiB_of_ceiling"] / expected, 1, places=4)

    def test_the_sanitizer_was_called(self) -> None:
        for tool in ("memcheck", "racecheck"):
            log = (self.run_.folder / f"logs/sanitizer.{tool}.0.log").read_text()
            self.assertIn(f"--tool {tool}", log)
            self.assertEqual(self.run_.items()[f"sanitizer.{tool}@0"]["status"], "ok")

    def test_the_table_has_every_item(self) -> None:
        table = (self.run_.folder / "table.txt").read_text()
        for name in names_listed():
            self.assertIn(name, table)
        self.assertIn("nothing below says anything about a GPU", table)


class Misbehaviour(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.run_ = Run("--only", "self_test", GPU_CHECK_SELF_TEST="1", GPU_CHECK_PRETEND="2")
        cls.items = cls.run_.items()

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.run_.folder)

    def item(self, name: str, status: str, gpu: int = 0) -> dict:
        item = self.items[f"self_test.{name}@{gpu}"]
        self.assertEqual(item["status"], status, item)
        return item

    def test_the_run_goes_on_to_its_end_and_fails(self) -> None:
        self.assertEqual(self.run_.status, 1)
        self.assertIn("self_test.environment@1", self.items)

    def test_a_hung_probe_is_killed_and_what_it_said_is_kept(self) -> None:
        item = self.item("hang", "hung")
        self.assertEqual(item["findings"], {"before": "said in time"})
        self.assertEqual(item["reason"], "killed at its deadline")

    def test_a_crash_is_named(self) -> None:
        item = self.item("crash", "failed")
        self.assertEqual(item["findings"], {"before": 1})
        self.assertIn("signal 11" if not IS_SANITIZED else "status", item["reason"])

    def test_an_end_before_the_answer(self) -> None:
        self.assertIn("status 7 before an answer", self.item("leave", "failed")["reason"])

    def test_an_exception_is_the_reason(self) -> None:
        self.assertEqual(self.item("throw", "failed")["reason"], 'thrown "here"\ufffd')

    def test_the_first_reason_counts(self) -> None:
        self.assertEqual(self.item("fail", "failed")["reason"], "first")

    def test_skipped_says_why(self) -> None:
        self.assertEqual(self.item("skip", "skipped")["reason"], "no reason")

    def test_nothing_outlives_its_probe(self) -> None:
        pid = int(self.item("orphan", "ok")["findings"]["pid"])
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    def test_many_findings_all_arrive(self) -> None:
        findings = self.item("flood", "ok")["findings"]
        self.assertEqual(findings["number 19999"], 19999)
        self.assertEqual(len(findings), 20000)

    def test_each_gpu_has_the_environment_of_the_probe(self) -> None:
        for gpu in (0, 1):
            self.assertEqual(self.item("environment", "ok", gpu)["findings"]["GPU_CHECK_VARIABLE"], "given")

    def test_the_journal_has_every_step(self) -> None:
        hang = [line for line in self.run_.journal() if line["item"] == "self_test.hang"]
        self.assertEqual([line.get("status", line.get("name")) for line in hang], ["started", "before", "hung"])


class Options(unittest.TestCase):
    def test_a_deadline_for_everything(self) -> None:
        with Run("--only", "self_test.hang", "self_test.flood", "--deadline", "1", GPU_CHECK_SELF_TEST="1") as run:
            self.assertEqual(run.status, 1)
            self.assertEqual(run.items()["self_test.hang@0"]["status"], "hung")
            self.assertIn("--deadline", run.items()["self_test.flood@0"]["reason"])

    def test_only(self) -> None:
        with Run("--only", "queues", "facts.device") as run:
            self.assertEqual(
                list(run.items()),
                ["machine@0", "facts.device@0", "queues.launch_depth@0", "queues.graph_replay@0"],
            )

    def test_a_name_that_is_none(self) -> None:
        with Run("--only", "quarks") as run:
            self.assertEqual(run.status, 2)
            self.assertIn("quarks", run.process.stderr)

    def test_a_folder_that_cannot_be_made(self) -> None:
        with Run(output="/proc/nowhere") as run:
            self.assertEqual(run.status, 1)
            self.assertIn("/proc/nowhere", run.process.stderr)

    def test_a_gpu_that_is_not_there(self) -> None:
        with Run(TREERING_DEVICE="cuda", CUDA_VISIBLE_DEVICES="") as run:
            self.assertEqual(run.status, 1)
            self.assertIn("no GPU", run.items()["machine@0"]["reason"])

    def test_what_a_sanitizer_finds_is_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as tools:
            tool = pathlib.Path(tools) / "compute-sanitizer"
            tool.write_text('#!/bin/sh\nshift 4; "$@"; exit 86\n')
            tool.chmod(0o755)
            with Run("--only", "sanitizer.memcheck", PATH=f"{tools}:{os.environ['PATH']}") as run:
                self.assertEqual(run.status, 1)
                self.assertIn("compute-sanitizer found", run.items()["sanitizer.memcheck@0"]["reason"])

    def test_visible_devices_begin_with_the_one_that_is_asked(self) -> None:
        with Run("--only", "self_test.environment", GPU_CHECK_SELF_TEST="1", GPU_CHECK_PRETEND="2",
                 CUDA_VISIBLE_DEVICES="5,3") as run:
            seen = [run.items()[f"self_test.environment@{gpu}"]["findings"]["CUDA_VISIBLE_DEVICES"] for gpu in (0, 1)]
            self.assertEqual(seen, ["5,3", "3,5"])


@unittest.skipIf(IS_SANITIZED, "with sanitizers the program is linked with shared libraries")
class Bundle(unittest.TestCase):
    def test_it_runs_elsewhere_with_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "bundle"
            subprocess.run([sys.executable, BUNDLE, PROGRAM, folder], check=True)
            self.assertEqual({file.name for file in folder.iterdir()}, {"treering-gpu-check", "run", "README"})
            glibc = re.search(r"glibc (\d+)\.(\d+)", (folder / "README").read_text())
            self.assertLessEqual((int(glibc[1]), int(glibc[2])), (2, 36))
            size = sum(file.stat().st_size for file in folder.iterdir())
            self.assertLess(size, 40 << 20)
            self.assertEqual(self.libraries(folder / "treering-gpu-check"), {"libc", "libm"})

            elsewhere = pathlib.Path(name) / "elsewhere"
            elsewhere.mkdir()
            command = [folder / "run", "--only", "matrix.2.all_reduce", "facts"]
            run = subprocess.run(command, cwd=elsewhere, env={}, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertTrue((elsewhere / "gpu-check-results/result.json").exists())

    def libraries(self, program: pathlib.Path) -> set[str]:
        ldd = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        names = {pathlib.Path(line.split()[0]).name.split(".so")[0] for line in ldd.splitlines()}
        loader = {"linux-vdso", "ld-linux-x86-64", "ld-linux-aarch64"}
        return names - loader - {"libdl", "libpthread", "librt"}


if __name__ == "__main__":
    unittest.main()
