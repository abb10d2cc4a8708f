"""Labtasker's own server, with its raw client and with its workers."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import labtasker
from labtasker import Client

from bench.subject import answer, seconds

DEADLINE_S = 60.0
#: A queue with one task.
ALONE = "alone"
FORK = multiprocessing.get_context("fork")


class Labtasker:
    """A server of its own, on loopback, with an empty database."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="labtasker-")
        self._database = Path(self._folder.name) / "server.db"
        os.chdir(self._folder.name)  # its workers leave a folder where they run
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        self._server = subprocess.Popen(
            [Path(sys.executable).with_name("labtasker-server"), "serve", "--connection", "http",
             "--port", str(port), "--database", str(self._database)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._wait()

    def client(self, queue: str = "default") -> Client:
        return Client(url=self._url, queue=queue)

    def submits_a_second(self, tasks: int) -> float:
        with self.client() as client:
            return tasks / seconds(lambda: [client.submit_task({"n": k}) for k in range(tasks)])

    def fill(self, tasks: int) -> int:
        """So many tasks more, copied from one that was submitted."""
        with self.client() as client:
            task = client.submit_task({"n": 0})
        with sqlite3.connect(self._database, timeout=DEADLINE_S) as database:
            for table in ("tasks", "task_routes"):
                names = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                columns = ", ".join(names)
                taken = ", ".join("copies.task_id" if n == "task_id" else f"t.{n}" for n in names)
                database.execute("CREATE TEMP TABLE IF NOT EXISTS copies (task_id TEXT)")
                if table == "tasks":
                    ids = ((f"t_{secrets.token_urlsafe(9)}",) for _ in range(tasks))
                    database.executemany("INSERT INTO copies VALUES (?)", ids)
                database.execute(
                    f"INSERT INTO {table} ({columns}) SELECT {taken} FROM {table} t, copies "
                    "WHERE t.task_id = ?", (task.id,),
                )  # fmt: skip
        return tasks

    def claims_a_second(self, workers: int, for_s: float) -> float:
        """Claimed and completed, by so many processes at once, for so long."""
        total, barrier = FORK.Value("q", 0), FORK.Barrier(workers)

        def work() -> None:
            with self.client() as client:
                barrier.wait(DEADLINE_S)
                done, end = 0, time.perf_counter() + for_s
                while time.perf_counter() < end:
                    done += claim(client)
            with total.get_lock():
                total.value += done

        processes = [FORK.Process(target=work, daemon=True) for _ in range(workers)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        return total.value / for_s

    def takeover_s(self) -> float:
        """Seconds from the kill of a worker until another one has its task."""
        with self.client(ALONE) as client:
            client.create_queue(ALONE)
            client.submit_task({"n": 0})
        first, second = FORK.SimpleQueue(), FORK.SimpleQueue()
        victim = FORK.Process(target=play, args=(self._url, first), daemon=True)
        victim.start()
        first.get()
        os.kill(victim.pid or 0, signal.SIGKILL)
        killed = time.perf_counter()
        FORK.Process(target=play, args=(self._url, second), daemon=True).start()
        second.get()
        return time.perf_counter() - killed

    def _wait(self) -> None:
        end = time.monotonic() + DEADLINE_S
        with self.client() as client:
            while True:
                try:
                    client._health()
                    client.create_queue("default")
                    return
                except labtasker.APIError:
                    return  # the queue is there already
                except labtasker.TransportError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.1)


def claim(client: Client) -> bool:
    """Claim a task and complete it at once; False where none is left."""
    run = f"r_{secrets.token_urlsafe(9)}"
    got = client._claim(route="default", run_id=run)
    if got is None:
        return False
    client._complete(task_id=got.task.id, run_id=run, result={})
    return True


def play(url: str, begun: Any) -> None:
    """Labtasker's own worker, in a task that lasts longer than anybody waits."""

    os.environ["LABTASKER_URL"] = url

    # By default a worker with nothing to do leaves after five minutes, too soon to take over.
    @labtasker.loop(queue=ALONE, idle_timeout=3600)
    def endless(n: int = labtasker.TaskArg()) -> None:
        begun.put(n)
        time.sleep(3600)

    endless()


if __name__ == "__main__":
    server = Labtasker()
    answer({name: getattr(server, name) for name in
            ("submits_a_second", "fill", "claims_a_second", "takeover_s")})  # fmt: skip
