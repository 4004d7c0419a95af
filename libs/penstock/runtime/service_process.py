"""The life cycle of a service's process."""

from __future__ import annotations

import faulthandler
import signal
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.errors import PenstockError
from penstock.http.security.authentication import authentication
from penstock.http.security.token_kinds import identities_of
from penstock.http.web_server import WebServer
from penstock.log.clock import SystemClock
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from penstock.quarantine import UnreadableRecordError
from penstock.runtime.health import Health
from penstock.runtime.health_routes import application
from penstock.runtime.logs import set_up
from penstock.runtime.loop import Loop, ServiceCore, Stopping
from penstock.runtime.metrics import Metrics
from penstock.runtime.settings import ServiceSettings, SettingsError, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.routing import BaseRoute
    from structlog.typing import FilteringBoundLogger

    from penstock.http.security.issuer import Issuer, IssuerSettings

FINE, FAILED, USAGE = 0, 1, 2
S = TypeVar("S", bound=ServiceSettings)


@dataclass(slots=True)
class Context(Generic[S]):
    """The arguments with which a service core is opened. `observers`: callbacks that update metrics on each scrape.
    `routes`: additional HTTP routes. `listening`: callbacks to call once the web server runs. Each callback gets the
    URL at which other processes reach the service.
    """

    settings: S
    log: KafkaLog
    names: TopicNames
    clock: SystemClock
    metrics: Metrics
    health: Health
    logger: FilteringBoundLogger
    stopping: Stopping
    routes: list[BaseRoute] = field(default_factory=list)
    observers: list[Callable[[], None]] = field(default_factory=list)
    listening: list[Callable[[str], None]] = field(default_factory=list)

    def observe(self) -> None:
        """Update the metrics."""
        for observer in self.observers:
            observer()


def run(service: str, settings_class: type[S], open_core: Callable[[Context[S]], ServiceCore]) -> int:
    """Run a service until SIGTERM or SIGINT. Returns the exit code: 0 success, 1 failure, 2 invalid settings.

    SIGUSR1 writes the stack of each thread to standard error. The service continues.
    """
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
    try:
        settings = load(settings_class)
    except SettingsError as error:
        sys.stderr.write(f"penstock {service}: {error}\n")
        return USAGE
    logger = set_up(service, settings.instance, settings.log_level, settings.log_format)
    stopping = Stopping(leave_s=settings.leave_s)
    stopping.listen()
    try:
        _serve(service, settings, open_core, logger, stopping)
    except SettingsError as error:
        sys.stderr.write(f"penstock {service}: {error}\n")
        return USAGE
    except UnreadableRecordError as error:
        logger.error(  # noqa: TRY400 - the message explains it, without a traceback
            "failed",
            reason=str(error),
            kind=type(error).__name__,
            record=str(error.place),
            command=error.command,
        )
        return FAILED
    except PenstockError as error:
        logger.error("failed", reason=str(error), kind=type(error).__name__)  # noqa: TRY400 - without a traceback
        return FAILED
    except Exception:
        logger.exception("failed")
        return FAILED
    logger.info("stopped")
    return FINE


def _serve(
    service: str,
    settings: S,
    open_core: Callable[[Context[S]], ServiceCore],
    logger: FilteringBoundLogger,
    stopping: Stopping,
) -> None:
    tokens, issuer_settings, certificates = settings.tokens(), settings.issuer(), settings.certificates()
    log = KafkaLog(settings.bootstrap_servers, settings.kafka_properties(), settings.give_up_s)
    log.interrupt = stopping.check
    metrics, health = Metrics(service), Health(settings.give_up_s)
    names = TopicNames(settings.prefix)
    context = Context(settings, log, names, SystemClock(), metrics, health, logger, stopping)
    health.check("kafka", log.last_error)
    if tokens is not None:
        health.check("tokens", lambda: tokens.last_error)
    log.topics()  # fail at once if the broker is unreachable or refuses the client
    web: WebServer | None = None
    core: ServiceCore | None = None
    issuer: Issuer | None = None
    try:
        if issuer_settings is not None:
            issuer = _issuer(issuer_settings)
            health.check("issuer", issuer.last_error)
        core = open_core(context)
        middleware = [*settings.access().middleware(), *authentication(identities_of(tokens, issuer))]
        app = application(health, metrics, context.observe, context.routes, middleware)
        web = WebServer(app, settings.http_host, settings.http_port, settings.web_limits(), certificates)
        logger.info("started", http_port=web.port)
        for listener in context.listening:
            listener(settings.http_url(web.port))
        Loop(stopping, health, metrics, logger, settings.give_up_s).run(core, settings.poll_ms / 1000)
    finally:
        if web is not None:
            web.stop()
        if issuer is not None:
            issuer.close()
        if core is not None:
            core.close()
        log.close()


def _issuer(settings: IssuerSettings) -> Issuer:
    from penstock.http.security.issuer import Issuer  # noqa: PLC0415 - loads cryptography

    return Issuer(settings)
