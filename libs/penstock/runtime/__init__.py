"""What every service shares: settings, logs, metrics, health, the loop around its steps, and an orderly end.

A service's `__main__` calls `run` with its name, its settings class, and a function that opens its core; the core is a
class with `step(timeout_s)` and `close()` that knows nothing of this package. Needs the `cluster` extra.
"""

from penstock.runtime.loop import EngineCore, Stopping
from penstock.runtime.run import Context, run
from penstock.runtime.settings import ServiceSettings, SettingsError, load

__all__ = ["Context", "EngineCore", "ServiceSettings", "SettingsError", "Stopping", "load", "run"]
