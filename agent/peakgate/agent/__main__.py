"""`python -m peakgate.agent JSON`: the agent without the command around it, whose parser and tables would stay in memory for months.

`peakgate agent` becomes this when it is to run until it is stopped. The argument holds the options of `run_agent` by name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from peakgate.agent.main import run_agent
from peakgate.agent.told import PATHS

if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    options |= {name: Path(options[name]) for name in PATHS if options.get(name)}
    sys.exit(run_agent(**options))
