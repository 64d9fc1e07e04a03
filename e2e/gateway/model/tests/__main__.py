"""Runs every test of the strict provider, and ends with one line: N passed, N failed."""

import sys
import unittest
from pathlib import Path

here = Path(__file__).resolve().parent
suite = unittest.defaultTestLoader.discover(str(here), top_level_dir=str(here.parent))
result = unittest.TextTestRunner(verbosity=0).run(suite)
failed = len(result.failures) + len(result.errors)
print(f"{result.testsRun - failed} passed, {failed} failed")
sys.exit(not result.wasSuccessful())
