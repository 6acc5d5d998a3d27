"""Tests of the decisions: tables with an id a case, and what must hold always."""
