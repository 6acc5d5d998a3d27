"""The parts in POSIX sh, run by every shell that is there."""
