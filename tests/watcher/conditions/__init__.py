"""Each kind of condition on this machine."""

import pytest

# What fails in a suite shows its values, as in a test module.
pytest.register_assert_rewrite("tests.suites.condition")
