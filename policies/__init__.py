"""Decisions of koder-monitor: values and `now` in, a decision with its reason out."""
