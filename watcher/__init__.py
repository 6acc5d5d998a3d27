"""What looks and waits in koder-monitor; `__version__` is that of the distribution."""

__version__ = "0.1.0"
