"""What sends in koder-monitor: pings, their channels and the fallback log."""
