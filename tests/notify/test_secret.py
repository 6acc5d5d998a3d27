"""A key shows itself to nobody."""

import copy
import pprint

import pytest

from notify.secret import Secret

KEY = "s3cr3t-Key"


@pytest.mark.parametrize(
    "shown",
    [repr, str, "{}".format, "%s".__mod__, "%r".__mod__, ascii, pprint.pformat],
    ids=["repr", "str", "format", "%s", "%r", "ascii", "pprint"],
)
def test_no_way_of_showing_a_key_shows_it(shown: object) -> None:
    assert callable(shown)
    assert shown(Secret(KEY)) == "***"


def test_a_container_does_not_show_it_either() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{[secret]} { ({'key': secret}) } {copy.copy(secret)}"


def test_a_key_has_no_dictionary_to_be_dumped() -> None:
    with pytest.raises(TypeError):
        vars(Secret(KEY))


def test_a_request_can_have_it() -> None:
    assert Secret(KEY).reveal() == KEY
