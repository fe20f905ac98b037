"""A mode of a scan has its word, its point and its meaning: the places that know of modes know the same ones."""

from lakebed.changes.scan_modes import SCAN_MODES
from lakebed.definition.scan_mode import DEFAULT, OTHER_WORDS, POINTS
from lakebed.options import SCAN_MODE


def test_every_word_of_the_option_has_a_meaning() -> None:
    """Each word is a mode, another word for one, or leaves the choice to other options; no mode is without a word."""
    assert set(SCAN_MODE.choices) == {*SCAN_MODES, *OTHER_WORDS, DEFAULT}
    assert len(SCAN_MODE.choices) == len(SCAN_MODES) + len(OTHER_WORDS) + 1


def test_other_words_and_points_are_of_modes() -> None:
    """Another word leads to a mode that is there, and options name the points of such only."""
    assert {*OTHER_WORDS.values(), *POINTS} <= set(SCAN_MODES)
