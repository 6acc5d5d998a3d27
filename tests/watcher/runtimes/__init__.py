"""Tests of what coding agents run."""
