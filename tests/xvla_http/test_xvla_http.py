"""``policy/xvla_http`` against a stand-in for X-VLA's server, with its shapes and its answers."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness.errors import RollpoolError
from harness.policies import Policy, PolicyError, Session, load_policy
from harness.policies.ee6d import Ee6dForm
from policy.xvla_http.act import json_numpy

FOLDER = Path(__file__).resolve().parents[2] / "policy" / "xvla_http"
PROPRIO = np.linspace(0, 1, 20, dtype=np.float32)
Answer = Callable[[dict[str, Any]], tuple[int, Any]]


class Stand(ThreadingHTTPServer):
    """Answers ``/act`` with ``answer(question)``, the question's arrays decoded."""

    daemon_threads = True

    def __init__(self, answer: Answer, port: int = 0) -> None:
        self.answer, self.connections = answer, 0
        self.drip_s, self.hangs_up = 0.0, False
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self) -> int:
        return self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stand

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/act":
            status, answer = 404, "no such path"
        else:
            status, answer = self.server.answer({k: decoded(v) for k, v in question.items()})
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if not self.server.drip_s:
            self.wfile.write(text.encode())
        for letter in text if self.server.drip_s else "":
            self.wfile.write(letter.encode())
            time.sleep(self.server.drip_s)
        self.close_connection = self.server.hangs_up

    def log_message(self, *_: Any) -> None: ...


def decoded(value: Any) -> Any:
    """A json_numpy text as its array, independently of the code that wrote it."""
    if not (isinstance(value, str) and value.startswith("{")):
        return value
    fields = json.loads(value)
    assert sorted(fields) == ["__numpy__", "dtype", "shape"]
    raw = base64.b64decode(fields["__numpy__"])
    return np.frombuffer(raw, np.dtype(fields["dtype"])).reshape(fields["shape"])


def still(question: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"action": [question["proprio"].tolist()] * 30}


@pytest.fixture
def stand() -> Iterator[Stand]:
    server = Stand(still)
    yield server
    server.shutdown()
    server.server_close()


def load(port: int, **more: Any) -> Policy:
    settings = yaml.safe_load((FOLDER / "deploy_policy.yml").read_text())
    settings |= {"server": f"127.0.0.1:{port}", "deadline_s": 10, "connect_s": 5, **more}
    settings.pop("exec_actions")
    return load_policy(FOLDER, settings, {})


def ask(policy: Policy, instruction: str = "go") -> np.ndarray:
    names = ("countertop", "left_wrist", "right_wrist")
    images = {name: np.full((4, 6, 3), k, np.uint8) for k, name in enumerate(names)}
    seen = {"images": images, "proprio": PROPRIO, "instruction": instruction, "last_action": None}
    return policy.infer(seen, Session.begin("s", {"task": "t"}))


def test_the_question_has_the_documented_shapes(stand: Stand) -> None:
    asked: list[dict[str, Any]] = []

    def remember(question: dict[str, Any]) -> tuple[int, Any]:
        asked.append(question)
        return still(question)

    stand.answer = remember
    actions = ask(load(stand.port))
    assert actions.shape == (30, 20)
    question = asked[0]
    assert sorted(question) == [
        "domain_id", "image0", "image1", "image2", "language_instruction", "proprio", "steps",
    ]  # fmt: skip
    for k in range(3):
        assert question[f"image{k}"].shape == (4, 6, 3) and question[f"image{k}"].dtype == np.uint8
        assert (question[f"image{k}"] == k).all()
    assert question["proprio"].dtype == np.dtype("<f4") and question["proprio"].shape == (20,)
    assert (question["domain_id"], question["steps"]) == (6, 10)
    assert question["language_instruction"] == "go"
    # RoboTwin's convention: 1 - 2 * open, and back by how sure the hand closes.
    assert question["proprio"][9] == pytest.approx(1 - 2 * PROPRIO[9])
    assert actions[0, 9] == 1 and actions[0, 19] == 1


def test_json_numpy_is_written_as_documented() -> None:
    text = json_numpy(np.array([0.5, -1], np.float32))
    assert text == '{"__numpy__": "AAAAPwAAgL8=", "dtype": "<f4", "shape": [2]}'
    picture = json_numpy(np.zeros((1, 1, 3), np.uint8))
    assert picture == '{"__numpy__": "AAAA", "dtype": "|u1", "shape": [1, 1, 3]}'


def test_one_connection_is_kept(stand: Stand) -> None:
    policy = load(stand.port)
    for _ in range(5):
        ask(policy)
    assert stand.connections == 1


def test_a_connection_that_the_server_closes_is_made_again(stand: Stand) -> None:
    stand.hangs_up = True
    policy = load(stand.port)
    assert [ask(policy).shape for _ in range(3)] == [(30, 20)] * 3
    assert stand.connections == 3


@pytest.mark.parametrize(
    ("status", "answer", "told"),
    [
        (400, {"error": "image0 is no image"}, "400: image0 is no image"),
        (500, "<html>Internal Server Error", "500: <html>Internal Server Error"),
        (200, "no JSON", "no JSON object"),
        (200, {"actions": []}, "it has actions"),
        (200, {"action": [[0.0] * 19]}, r"shape \(1, 19\)"),
        (200, {"action": []}, r"shape \(0,\)"),
        (200, {"action": [[float("nan")] * 20]}, "nan at action 0"),
    ],
)
def test_what_is_no_chunk_is_told_and_costs_one_answer(
    stand: Stand, status: int, answer: Any, told: str
) -> None:
    policy = load(stand.port)
    stand.answer = lambda _: (status, answer)
    with pytest.raises(PolicyError, match=told):
        ask(policy)
    stand.answer = still
    assert ask(policy).shape == (30, 20)


@pytest.mark.parametrize("drips", [False, True])
def test_a_deadline_holds_for_an_answer_that_hangs_and_for_one_that_drips(
    stand: Stand, drips: bool
) -> None:
    policy, go = load(stand.port, deadline_s=0.5), threading.Event()

    def late(question: dict[str, Any]) -> tuple[int, Any]:
        if not drips:
            go.wait(60)
        return still(question)

    stand.answer, stand.drip_s = late, 0.05 * drips  # minutes, for the whole answer
    with pytest.raises(PolicyError, match=r"no answer within 0\.5 s"):
        ask(policy)
    go.set()
    stand.answer, stand.drip_s = still, 0.0
    assert ask(policy).shape == (30, 20)


def test_a_server_that_is_gone_is_said() -> None:
    stand = Stand(still)
    policy = load(stand.port)
    ask(policy)
    stand.shutdown()
    stand.server_close()
    with pytest.raises(RollpoolError, match="no server"):
        load(stand.port, connect_s=0.3)


@pytest.mark.parametrize("rot6d", ["interleaved", "contiguous"])
@pytest.mark.parametrize("gripper", ["open", "closing"])
def test_the_models_ee6d_comes_back_as_ours(rot6d: str, gripper: str) -> None:
    form = Ee6dForm(rot6d, gripper)
    ours = np.arange(20, dtype=np.float32)
    ours[[9, 19]] = [1, 0]
    theirs = form.proprio(ours)
    first = [3, 5, 7, 4, 6, 8] if rot6d == "contiguous" else [3, 4, 5, 6, 7, 8]
    assert theirs[3:9].tolist() == first and theirs[13:19].tolist() == [x + 10 for x in first]
    assert theirs[[9, 19]].tolist() == ([1, 0] if gripper == "open" else [-1, 1])
    assert (theirs[[0, 1, 2, 10, 11, 12]] == ours[[0, 1, 2, 10, 11, 12]]).all()
    back = form.actions(theirs[None])
    assert (back[0] == ours).all()
    assert (ours == np.r_[0:9, 1, 10:19, 0]).all()  # what came in was not written to


def test_an_unknown_form_is_refused(stand: Stand) -> None:
    with pytest.raises(RollpoolError, match="interleaved or contiguous"):
        load(stand.port, rot6d="rows")
