"""`python -m rehydrate`: the command `rehydrate`."""

from __future__ import annotations

import sys

from rehydrate.main import main

sys.exit(main())
