#!/usr/bin/env python3
"""check_ptxas.py finds what it must: each rule is broken once."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_ptxas  # noqa: E402

SYMBOL = "_Z5entryILN10CollectiveE0ELN9AlgorithmE3ELNS_8WireTypeE1EEvv"

THREADS = check_ptxas.BLOCK_THREADS

PTX = f"""
.target sm_90
.visible .entry {SYMBOL}(
	.param .align 8 .b8 {SYMBOL}_param_0[64]
)
.maxntid {THREADS}
{{
	ld.relaxed.sys.b64 	%rd1, [%rd2];
	@%p1 st.release.sys.b64 	[%rd2], %rd1;
	bar.red.or.pred 	%p2, 0, %p1;
}}
"""

REPORT = f"""
ptxas info    : Compiling entry function '{SYMBOL}' for 'sm_90'
ptxas info    : Function properties for {SYMBOL}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers, 3072 bytes smem
"""


def complaints(ptx: str = PTX, report: str = REPORT) -> list[str]:
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        folder = pathlib.Path(name)
        (folder / "kernels.ptx").write_text(ptx)
        (folder / "ptxas.log").write_text(report)
        return check_ptxas.check(folder)


class Rules(unittest.TestCase):
    def finds(self, what: str, **files: str) -> None:
        found = complaints(**files)
        self.assertEqual(len(found), 1, found)
        self.assertIn(what, found[0])

    def test_good_kernels_pass(self) -> None:
        self.assertEqual(complaints(), [])

    def test_names_are_those_of_the_library(self) -> None:
        self.assertEqual(check_ptxas.readable(SYMBOL), "all_reduce two_shot ll")

    def test_spills(self) -> None:
        self.finds("4 of spills", report=REPORT.replace("0 bytes spill loads", "4 bytes spill loads"))

    def test_stack(self) -> None:
        self.finds("8 bytes of stack", report=REPORT.replace("0 bytes stack", "8 bytes stack"))

    def test_too_many_registers(self) -> None:
        most = 65536 // THREADS // 8 * 8
        self.assertEqual(complaints(report=REPORT.replace("Used 96", f"Used {most}")), [])
        self.finds("cannot hold a block", report=REPORT.replace("Used 96", f"Used {most + 1}"))

    def test_too_much_shared_memory(self) -> None:
        self.finds("cannot hold a block", report=REPORT.replace("3072 bytes smem", "240000 bytes smem"))

    def test_an_unknown_architecture(self) -> None:
        self.finds("not in LIMITS", ptx=PTX.replace("sm_90", "sm_77"), report=REPORT.replace("sm_90", "sm_77"))

    def test_other_launch_bounds(self) -> None:
        self.finds("is launched with", ptx=PTX.replace(f".maxntid {THREADS}", f".maxntid {THREADS // 2}"))

    def test_no_launch_bounds(self) -> None:
        found = complaints(ptx=PTX.replace(f".maxntid {THREADS}\n", ""))
        self.assertTrue(any("no launch bounds" in line for line in found), found)

    def test_no_launch_bounds_of_one_kernel_among_others(self) -> None:
        other = PTX.replace(SYMBOL, SYMBOL.replace("E3E", "E2E")).replace(f".maxntid {THREADS}\n", "")
        report = REPORT + REPORT.replace(SYMBOL, SYMBOL.replace("E3E", "E2E"))
        self.finds("no launch bounds", ptx=PTX + other, report=report)

    def test_blocks_of_an_sm(self) -> None:
        limits = check_ptxas.LIMITS["sm_80"]
        for threads, registers, shared, blocks in (
            (1024, 64, 0, 1),
            (1024, 32, 0, 2),
            (256, 255, 0, 1),
            (32, 16, 0, 32),
            (128, 16, 50_000, 3),
            (384, 168, 3072, 1),
            (384, 169, 3072, 0),
        ):
            with self.subTest(threads=threads, registers=registers, shared=shared):
                self.assertEqual(check_ptxas.blocks_of_an_sm(limits, threads, registers, shared), blocks)

    def test_instructions(self) -> None:
        for instruction, what in (
            ("ld.global.nc.v4.u32 	{%r1}, [%rd2];", "non-coherent load"),
            ("@%p1 ld.global.L1::no_allocate.nc.u64 	%rd1, [%rd2];", "non-coherent load"),
            ("atom.global.add.u32 	%r1, [%rd2], 1;", "read-modify-write"),
            ("@!%p1 red.sys.global.add.u64 	[%rd2], 1;", "read-modify-write"),
            ("fence.sc.sys;", "seq_cst fence"),
            ("membar.gl;", "seq_cst fence"),
        ):
            with self.subTest(instruction):
                self.finds(what, ptx=PTX.replace("}\n", f"\t{instruction}\n}}\n"))

    def test_nothing_compiled(self) -> None:
        self.assertEqual(len(complaints(ptx=".target sm_90\n", report="")), 2)


if __name__ == "__main__":
    unittest.main()
