"""Run a notebook in a sandboxed kernel, and survive whatever it does there."""

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import Execute
from traitlets import Bool, Instance, Unicode

from posenc_grader import sandbox, wire

KERNEL_NAME = "posenc-sandbox"  # no kernel of this name is installed: nothing can run it bare


class SubmissionError(Exception):
    """A submission that cannot be graded, with the cause as a teacher needs to read it."""


class SandboxedKernelManager(AsyncKernelManager):
    """Starts the kernel inside the sandbox and talks to it over sockets in a folder of its own."""

    sandboxed = Bool(True, help="False runs student code on the bare machine.").tag(config=True)
    limits = Instance(sandbox.Limits, args=())
    killed_for = Unicode(allow_none=True, default_value=None)

    def __init__(self, **options: Any) -> None:
        # Directly under /tmp, since the path of a socket may have about 100 characters only.
        self.shared = Path(tempfile.mkdtemp(prefix=f"posenc-{os.getpid()}-", dir="/tmp"))
        options.pop("kernel_name", None)
        super().__init__(
            kernel_name=KERNEL_NAME,
            transport="ipc",
            ip=str(self.shared / "socket"),
            connection_file=str(self.shared / "connection.json"),
            **options,
        )
        self.user = 1_000_000 + os.getpid()

    @property
    def kernel_spec(self) -> KernelSpec:
        """The kernel's command, made here rather than read from a file that could be missing."""
        if self.sandboxed:
            command = sandbox.kernel_command(self.shared, self.limits, self.user)
        else:
            command = sandbox.bare_kernel_command()
        return KernelSpec(
            argv=command,
            display_name=KERNEL_NAME,
            language="python",
            interrupt_mode="message",  # a signal would stop at the sandbox's wall
            env={} if self.sandboxed else sandbox.environment(str(self.shared)),
        )

    def write_connection_file(self, **options: Any) -> None:
        """Write the connection file where the kernel's user may read it."""
        super().write_connection_file(**options)
        if self.sandboxed and os.geteuid() == 0:
            for path in (self.shared, Path(self.connection_file)):
                os.chown(path, self.user, self.user)

    async def _async_is_alive(self) -> bool:
        """Tell whether the kernel lives; one that takes more than its share is ended first.

        The client asks every second while a cell runs.
        """
        alive = await super()._async_is_alive()
        if alive and (excess := self._excess()):
            self.killed_for = excess
            await self._async_kill_kernel()
            return False
        return alive

    is_alive = _async_is_alive

    def _excess(self) -> str | None:
        if len(os.listdir(self.shared)) > 20:
            return "wrote files where only the kernel's sockets belong"
        try:
            family = psutil.Process(self.provisioner.process.pid).children(recursive=True)
            used = sum(process.memory_info().rss for process in family)
            if used > self.limits.memory_bytes:  # pages shared after a fork count once only
                used = sum(process.memory_full_info().uss for process in family)
        except psutil.Error:
            return None
        if used > self.limits.memory_bytes:
            return f"used more than {self.limits.memory_bytes / 2**30:.1f} GB of memory"
        return None

    def cleanup_resources(self, restart: bool = False) -> None:
        """Remove the kernel's folder together with its sockets."""
        super().cleanup_resources(restart=restart)
        if not restart:
            shutil.rmtree(self.shared, ignore_errors=True)


class SandboxedExecute(Execute):
    """Runs every cell; a cell that ends the kernel costs its own task and no other.

    When the kernel dies in a cell, the notebook is run again from the top without that cell.
    """

    kernel_name = Unicode(KERNEL_NAME)
    limits = Instance(sandbox.Limits, args=()).tag(config=True)
    most_deaths = 4

    def __init__(self, **options: Any) -> None:
        options["kernel_manager_class"] = SandboxedKernelManager
        super().__init__(**options)
        self.timeout = self.limits.cell_seconds

    def create_kernel_manager(self) -> SandboxedKernelManager:
        """Create a kernel manager with our limits, whatever kernel the notebook names."""
        self.km = SandboxedKernelManager(limits=self.limits, config=self.config)
        return self.km

    def preprocess(
        self, nb: NotebookNode, resources: Any, km: AsyncKernelManager | None = None
    ) -> tuple[NotebookNode, Any]:
        """Run the notebook; see the class."""
        self._deadly: dict[int, str] = {}
        started = time.monotonic()
        while True:
            self._room = dict.fromkeys(range(len(nb.cells)), self.limits.output_bytes)
            self._deadline = started + self.limits.notebook_seconds
            try:
                return super().preprocess(nb, resources, km)
            except _KernelEnded as end:
                self._deadly[end.index] = end.cause
                if len(self._deadly) > self.most_deaths:
                    raise SubmissionError(
                        f"{len(self._deadly)} cells ended the kernel; the last one {end.cause}"
                    ) from None
            except (TimeoutError, RuntimeError) as error:
                raise SubmissionError(f"the kernel did not start: {error}") from error

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Run one cell, unless it is known to end the kernel."""
        if index in self._deadly:
            cell.outputs = [
                new_output("error", ename="KernelEnded", evalue=f"this cell {self._deadly[index]}")
            ]
            return cell, resources
        if time.monotonic() > self._deadline:
            raise SubmissionError(
                f"running the notebook took more than {self.limits.notebook_seconds} s"
            )
        manager = self.km
        try:
            return super().preprocess_cell(cell, resources, index)
        except DeadKernelError:
            raise _KernelEnded(index, manager.killed_for or "ended the kernel") from None
        except CellTimeoutError:
            seconds = self.limits.cell_seconds
            raise _KernelEnded(index, f"ran on past {seconds} s and would not stop") from None

    def output(self, outs: list, msg: dict, display_id: str, cell_index: int) -> Any:
        """Keep plain text, errors and a probe's outcomes, up to a limit; drop all else."""
        content = msg["content"]
        if msg["msg_type"] == "stream":
            text = str(content.get("text", ""))
            content["text"] = text[: max(0, self._room[cell_index])]
            self._room[cell_index] -= len(text)
            if not content["text"]:
                return None
        elif msg["msg_type"] in ("display_data", "execute_result"):
            kept = {k: v for k, v in content["data"].items() if k in ("text/plain", wire.MIME)}
            if wire.MIME not in kept:
                self._room[cell_index] -= len(str(kept))
            if not kept or self._room[cell_index] < 0:
                return None
            content["data"], content["metadata"] = kept, {}
        elif msg["msg_type"] != "error":
            return None
        return super().output(outs, msg, display_id, cell_index)


class _KernelEnded(Exception):
    def __init__(self, index: int, cause: str) -> None:
        super().__init__(cause)
        self.index, self.cause = index, cause
