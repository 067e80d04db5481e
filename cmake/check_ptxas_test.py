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

PTX = f"""
.target sm_90
.visible .entry {SYMBOL}(
	.param .align 8 .b8 {SYMBOL}_param_0[64]
)
.maxntid 512
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
ptxas info    : Used 96 registers, used 1 barriers
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
        self.finds("needs 69632 registers", report=REPORT.replace("Used 96", "Used 129"))

    def test_no_launch_bounds(self) -> None:
        found = complaints(ptx=PTX.replace(".maxntid 512\n", ""))
        self.assertTrue(any("no launch bounds" in line for line in found), found)

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
