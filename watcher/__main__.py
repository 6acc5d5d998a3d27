"""`python -m watcher` is `koder-monitor`."""

import sys

from watcher.cli import main

sys.exit(main())
