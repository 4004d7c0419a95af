"""The runtime of the services: settings, logs, metrics, health, the step loop, and graceful shutdown.

A service's `__main__` calls `run` with its name, its settings class, and a function that opens its service core
(`ServiceCore`). The service core has `step(timeout_s)` and `close()`, and does not depend on this package. This package
needs the extra `cluster`.
"""

from penstock.runtime.loop import ServiceCore, Stopping
from penstock.runtime.service_process import Context, run
from penstock.runtime.settings import ServiceSettings, SettingsError, load

__all__ = ["Context", "ServiceCore", "ServiceSettings", "SettingsError", "Stopping", "load", "run"]
