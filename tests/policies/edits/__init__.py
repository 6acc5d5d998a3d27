"""Tests of the edits of other programs' files."""
