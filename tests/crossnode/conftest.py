"""Two hosts on one machine: network namespaces joined by a cable, each with its own loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.paths import CODE
from tests.e2e.conftest import Home


class Hosts:
    """``a`` is 10.71.x.1, ``b`` is 10.71.x.2."""

    def __init__(self, number: int) -> None:
        self.names = [f"rp{number}a", f"rp{number}b"]
        self.address = {"a": f"10.71.{number % 250}.1", "b": f"10.71.{number % 250}.2"}

    def make(self) -> None:
        a, b = self.names
        for name in self.names:
            _ip("netns", "add", name)
        _ip("link", "add", f"{a}0", "netns", a, "type", "veth", "peer", "name", f"{b}0", "netns", b)
        for name, address in zip(self.names, self.address.values(), strict=True):
            inside = ("-n", name)
            _ip(*inside, "addr", "add", f"{address}/24", "dev", f"{name}0")
            _ip(*inside, "link", "set", f"{name}0", "up")
            _ip(*inside, "link", "set", "lo", "up")

    def remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def name(self, host: str) -> str:
        return self.names["ab".index(host)]

    def cut(self) -> None:
        """Pull the cable."""
        _ip("-n", self.names[0], "link", "set", f"{self.names[0]}0", "down")

    def heal(self) -> None:
        _ip("-n", self.names[0], "link", "set", f"{self.names[0]}0", "up")


class TwoNodes(Home):
    """A home that both hosts share, and commands on either of them."""

    def __init__(self, path: Path, hosts: Hosts) -> None:
        super().__init__(path)
        self.hosts = hosts
        self.env["LEASE_TTL"] = "2"
        self._started: list[subprocess.Popen[str]] = []

    def on(self, host: str, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """Start ``rollpool`` there, with a host name of its own."""
        script = 'hostname "$0"; exec ip netns exec "$0" "$@"'
        argv = ["unshare", "--uts", "sh", "-c", script, self.hosts.name(host)]
        process = subprocess.Popen(
            [*argv, sys.executable, "-m", "harness.cli", *arguments],
            env={**self.env, "PYTHONPATH": str(CODE), **env},
            cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
            if process.stdout:
                process.stdout.close()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[TwoNodes]:
    hosts = Hosts(os.getpid() % 100_000)
    try:
        hosts.make()
    except (OSError, subprocess.CalledProcessError) as error:
        hosts.remove()
        reason = getattr(error, "stderr", None) or error
        if os.environ.get("CI"):
            raise
        pytest.skip(f"two hosts need root and ip netns: {reason}")
    shutil.copytree(CODE / "policy" / "expert", tmp_path / "policy" / "expert")
    home = TwoNodes(tmp_path, hosts)
    yield home
    home.close()
    hosts.remove()
