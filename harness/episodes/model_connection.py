"""A simulator's connection to its model, whichever of the two came to the other.

``server`` is everywhere the record that the worker sends (DESIGN.md, "Processes and channels").
Promises: a connection that serves is kept from one episode to the next, and one that has failed is
not used again; every wait has a deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.inference.model_client import ModelClient
from harness.inference.model_listener import ModelListener, NobodyCame

#: The worker names a server that listens: one that does not answer has died meanwhile.
CONNECT_DEADLINE_S = 10.0
#: Reversed roles: for a model whose connection broke to come back, within an episode's lease.
RETURN_DEADLINE_S = 20.0


class ModelConnection:
    """Goes to the server that it is told of, or, once it listens, waits for models to come.

    Args:
        waiting: called about once a second while it waits for a model.
    """

    def __init__(self, waiting: Callable[[], None]) -> None:
        self._waiting = waiting
        self._model: ModelClient | None = None
        self._address: tuple[Any, ...] = ()
        self._listener: ModelListener | None = None

    def listen(self, host: str, port: int, token: str) -> tuple[str, int]:
        """Reversed roles from now on; returns where. Raises ``RollpoolError``."""
        if self._listener is None:
            self._listener = ModelListener(host, port, token)
        return self._listener.host, self._listener.port

    def met(self, server: Mapping[str, Any], deadline_s: float) -> str:
        """ "" once a model has come, else what to say of it.

        Raises:
            RollpoolError: one came that serves something else.
        """
        try:
            self._come(server, deadline_s)
        except NobodyCame as nobody:
            return str(nobody)
        return ""

    def model(self, server: Mapping[str, Any]) -> ModelClient:
        """The model, with the session of ``server`` to be begun.

        Raises:
            RollpoolError: there is none, or it serves something else.
        """
        model = self._gone_to(server) if self._listener is None else self._come(server)
        model.session = server["session"]
        return model

    def close(self) -> None:
        """End the connection, if there is one: it is of no more use."""
        if self._model is not None:
            self._model.close()
            self._model = None

    def _gone_to(self, server: Mapping[str, Any]) -> ModelClient:
        address = (server["host"], int(server["port"]), server["token"])
        if self._model is None or self._address != address or self._model.gone():
            self.close()
            self._model = ModelClient(
                *address, server["session"], server["answer_s"],
                expect=server["expect"], connect_s=CONNECT_DEADLINE_S,
            )  # fmt: skip
            self._address = address
        return self._model

    def _come(
        self, server: Mapping[str, Any], deadline_s: float = RETURN_DEADLINE_S
    ) -> ModelClient:
        if self._model is None:
            assert self._listener is not None, "it was never told to listen"
            connection, host, port = self._listener.accept(
                deadline_s, server["answer_s"], self._waiting
            )
            self._model = ModelClient(
                host, port, server["token"], server["session"], server["answer_s"],
                expect=server["expect"], connection=connection,
            )  # fmt: skip
        return self._model
