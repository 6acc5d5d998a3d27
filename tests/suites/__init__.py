"""What every kind of a thing promises, to be run over each of them."""

import pytest

# What fails in a suite shows its values, as in a test module.
pytest.register_assert_rewrite("tests.suites.channel")
