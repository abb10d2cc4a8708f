"""tinyvla: the small learned policy that ships with the toolkit. ``model.py`` is the network."""

from __future__ import annotations

from typing import Any

from safetensors.torch import load_file

from harness.errors import RollpoolError
from policy.tinyvla.model import TinyVLA


def get_model(usr_args: dict[str, Any]) -> TinyVLA:
    """The network with the weights of ``usr_args["checkpoint"]``.

    Raises:
        RollpoolError: no checkpoint was named, or it is another network's.
    """
    path = usr_args.get("checkpoint")
    if not path:
        raise RollpoolError("policy tinyvla", "no checkpoint", "name one with CKPT_NAME")
    model = TinyVLA()
    try:
        model.load_state_dict(load_file(path))
    except RuntimeError as error:
        found = " ".join(str(error).split())[:300]
        raise RollpoolError(f"checkpoint {path}", found, "train it with this code") from error
    return model.eval()
