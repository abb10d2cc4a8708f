"""From a policy folder to a policy: both kinds of model, checks on what they say and give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import RollpoolError
from harness.policies import Policy, PolicyError, Session, load_policy
from harness.policies.adapt import Adapted

SETTINGS: dict[str, Any] = {"cameras": ["countertop"], "action_dim": 20, "chunk": 30}


def observation(**more: Any) -> dict[str, Any]:
    return {
        "images": {"countertop": np.full((48, 64, 3), 255, np.uint8)},
        "proprio": np.arange(20, dtype=np.float32),
        "state": {},
        "instruction": "put the cup in the box",
        "last_action": None,
        "expert": None,
        **more,
    }


def session(**episode: Any) -> Session:
    return Session.begin("s", {"task": "t", "seed": 1, **episode})


def folder(tmp_path: Path, code: str) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "deploy_policy.py").write_text(code)
    return tmp_path / "mine"


class Generates:
    """A numpy model in the shape of a vision-language-action model."""

    image_size = 8

    def tokenize(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]

    def generate_actions(self, **inputs: np.ndarray) -> np.ndarray:
        self.inputs = inputs
        return np.tile(inputs["proprio"][:, None], (1, 30, 1))


def test_generate_actions_gets_the_documented_inputs() -> None:
    model = Generates()
    settings = {**SETTINGS, "domain_id": 6, "generate_args": {"steps": 10}}
    chunk = Adapted(model, settings).infer(observation(), session())
    assert chunk.shape == (30, 20) and (chunk == np.arange(20)).all()
    inputs = model.inputs
    assert inputs["input_ids"].tolist() == [[3, 3, 3, 2, 3, 3]]
    assert inputs["input_ids"].dtype == np.int64
    assert inputs["image_input"].shape == (1, 1, 3, 8, 8)
    assert inputs["image_input"].dtype == np.float32
    # White: (1 - mean) / deviation of each channel.
    white = [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    np.testing.assert_allclose(inputs["image_input"][0, 0, :, 4, 4], white, rtol=1e-5)
    assert inputs["image_mask"].tolist() == [[True]]
    assert inputs["domain_id"].tolist() == [6] and inputs["domain_id"].dtype == np.int64
    assert inputs["proprio"].shape == (1, 20)
    assert inputs["steps"] == 10


def test_a_models_own_preprocess_wins() -> None:
    class Own(Generates):
        def preprocess(self, seen: Any) -> dict[str, np.ndarray]:
            return {"proprio": seen["proprio"] * 2, "extra": np.ones(3)}

    model = Own()
    chunk = Adapted(model, SETTINGS).infer(observation(), session())
    assert (chunk[0] == 2 * np.arange(20)).all()
    assert set(model.inputs) == {"proprio", "extra"} and model.inputs["extra"].shape == (1, 3)


def test_a_model_that_reads_text_needs_a_tokenizer() -> None:
    class Mute:
        def generate_actions(self, **inputs: np.ndarray) -> np.ndarray:
            return np.zeros((1, 1, 20))

    with pytest.raises(RollpoolError, match="neither preprocess nor tokenize"):
        Adapted(Mute(), SETTINGS)


def test_what_a_session_puts_in_keeps_its_type_whoever_it_is_answered_with() -> None:
    class Types:
        batched, seen = True, list[np.dtype[Any]]()

        def preprocess(self, seen: Any) -> dict[str, Any]:
            return {"x": seen["proprio"]}

        def generate_actions(self, x: np.ndarray) -> np.ndarray:
            self.seen.append(x.dtype)
            return np.zeros((len(x), 1, 20), np.float32)

    model = Types()
    seen = [{"proprio": np.zeros(20, kind)} for kind in (np.float32, np.float64, np.float32)]
    Adapted(model, {"needs": []}).infer_batch(seen, [Session(str(k)) for k in range(3)])
    assert model.seen == [np.float32, np.float64]


def test_a_chunk_is_its_own_memory_where_the_model_uses_its_own_again() -> None:
    class Again:
        out = np.zeros((2, 20), np.float32)

        def infer(self, seen: Any, session: Session) -> np.ndarray:
            self.out += 1
            return self.out

    policy = Adapted(Again(), {"needs": []})
    first = policy.infer({}, Session("one"))
    policy.infer({}, Session("other"))
    assert (first == 1).all()


def test_generate_actions_of_another_batch_is_refused() -> None:
    class Flat(Generates):
        def generate_actions(self, **inputs: np.ndarray) -> np.ndarray:
            return np.zeros((30, 20))

    with pytest.raises(PolicyError, match=r"\(30, 20\)"):
        Adapted(Flat(), SETTINGS).infer(observation(), session())


class Infers:
    def __init__(self, chunk: Any) -> None:
        self.given = chunk

    def infer(self, seen: Any) -> Any:
        return self.given


@pytest.mark.parametrize(
    ("chunk", "found"),
    [
        (np.full((2, 20), np.nan), "nan at action 0, dimension 0"),
        (np.full((2, 20), np.inf), "inf"),
        (np.full((2, 20), 1e300), "inf"),
        (np.zeros((2, 19)), r"\(2, 19\)"),
        (np.zeros((0, 20)), r"\(0, 20\)"),
        (np.zeros(20), r"\(20,\)"),
        (np.zeros((1, 2, 20)), r"\(1, 2, 20\)"),
        (None, "NoneType|shape"),
        ("nothing", "str"),
        ([[1, 2], [3]], "list"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_no_chunk_is_a_policy_error(chunk: Any, found: str) -> None:
    with pytest.raises(PolicyError, match=found):
        Adapted(Infers(chunk), SETTINGS).infer(observation(), session())


def test_a_chunk_becomes_float32() -> None:
    chunk = Adapted(Infers([[1] * 20]), SETTINGS).infer(observation(), session())
    assert chunk.dtype == np.float32 and chunk.shape == (1, 20)


def test_who_keeps_state_in_itself_is_exclusive() -> None:
    class Stateful(Infers):
        def reset(self, episode: Session) -> None:
            self.seed = episode.seed

    class WithSession:
        def infer(self, seen: Any, session: Session) -> Any:
            return np.full((1, 20), session.seed)

        def reset(self, session: Session) -> None:
            session.memory["ready"] = True

    assert Adapted(Stateful(0), SETTINGS).exclusive
    assert not Adapted(Infers(0), SETTINGS).exclusive
    assert not Adapted(Generates(), SETTINGS).exclusive
    policy = Adapted(WithSession(), SETTINGS)
    assert not policy.exclusive
    now = session(seed=7)
    policy.reset(now)
    assert now.memory["ready"] and (policy.infer(observation(), now) == 7).all()


def test_attributes_come_from_the_model_then_the_file_then_the_default() -> None:
    model = Infers(0)
    model.chunk = 5  # type: ignore[attr-defined]
    policy: Policy = Adapted(model, {"action_kind": "qpos", "action_dim": 16, "needs": ["expert"]})
    assert (policy.chunk, policy.action_kind, policy.action_dim) == (5, "qpos", 16)
    assert list(policy.needs) == ["expert"] and list(policy.cameras) == []
    with pytest.raises(RollpoolError, match=r"chunk of the policy.*5.*30"):
        Adapted(model, SETTINGS)


def test_a_native_policy_has_no_dimension_of_its_own() -> None:
    policy = Adapted(Infers(np.zeros((2, 7))), {"action_kind": "native", "needs": []})
    assert policy.action_dim is None and policy.infer(observation(), session()).shape == (2, 7)
    with pytest.raises(PolicyError, match=r"shape \(7,\)"):
        Adapted(Infers(np.zeros(7)), {"action_kind": "native", "needs": []}).infer(
            observation(), session()
        )
    fixed = {"action_kind": "native", "action_dim": 6, "needs": []}
    with pytest.raises(PolicyError, match=r"shape \(2, 7\).*give \(n >= 1, 6\)"):
        Adapted(Infers(np.zeros((2, 7))), fixed).infer(observation(), session())


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"action_kind": ""}, "action_kind"),
        ({"action_dim": 0}, "action_dim"),
        ({"chunk": "30"}, "chunk"),
        ({"needs": ["camera"]}, "needs"),
        ({"cameras": []}, "cameras"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(settings: dict, name: str) -> None:
    with pytest.raises(RollpoolError, match=name):
        Adapted(Infers(0), {**SETTINGS, **settings})


def test_an_object_without_a_contract_is_refused() -> None:
    with pytest.raises(RollpoolError, match="neither generate_actions nor infer"):
        Adapted(object(), SETTINGS)


def test_a_folder_is_loaded_with_its_own_modules(tmp_path: Path) -> None:
    policy_dir = folder(
        tmp_path,
        "from own_weights_of_mine import ONES\n"
        "class M:\n"
        "    def infer(self, seen): return ONES\n"
        "def get_model(usr_args):\n"
        "    assert usr_args['checkpoint'] is None\n"
        "    return M()\n",
    )
    (policy_dir / "own_weights_of_mine.py").write_text("ONES = [[1.0] * 20]\n")
    policy = load_policy(policy_dir, {**SETTINGS, "checkpoint": None}, {"exec_actions": 1})
    assert (policy.infer(observation(), session()) == 1).all()


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError.*no_such_module_anywhere"),
        ("def get_model(:", "SyntaxError"),
        ("x = 1", "no get_model"),
        ("def get_model(usr_args): raise OSError('no weights here')", "OSError: no weights here"),
        ("def get_model(usr_args): return 3", "neither generate_actions nor infer"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said_in_plain_words(
    tmp_path: Path, code: str, found: str
) -> None:
    with pytest.raises(RollpoolError, match=found) as raised:
        load_policy(folder(tmp_path, code), SETTINGS, {})
    assert "\n" not in str(raised.value)


def test_a_missing_folder_names_those_that_exist(tmp_path: Path) -> None:
    folder(tmp_path, "")
    with pytest.raises(RollpoolError, match="no such policy folder; choose one of: mine"):
        load_policy(tmp_path / "mien", SETTINGS, {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(RollpoolError, match="no such file"):
        load_policy(tmp_path / "empty", SETTINGS, {})
