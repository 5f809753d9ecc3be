"""The walls around a student's kernel.

`bubblewrap <https://github.com/containers/bubblewrap>`_ starts the kernel where there is no
network, where only Python and the system's libraries can be read, and where only a small folder
in memory can be written. ``prlimit`` bounds what each process may use.
"""

import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

IN_KERNEL = Path(__file__).parent / "in_kernel"
TOOLS = ("bwrap", "prlimit", "setpriv")


class SandboxError(RuntimeError):
    """The sandbox is missing or does not hold: nothing may be graded."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    `memory_bytes` and `cpu_seconds` bound each process; the memory of all of a submission's
    processes together is watched by `kernel.SandboxedKernelManager`.
    """

    cell_seconds: int = 10
    notebook_seconds: int = 240
    cpu_seconds: int = 240
    memory_bytes: int = 2 * 2**30
    processes: int = 64
    file_bytes: int = 10 * 2**20
    scratch_bytes: int = 64 * 2**20
    output_bytes: int = 200_000  # a cell; what comes after is dropped


def kernel_command(shared: Path, limits: Limits, user: int) -> list[str]:
    """Return the command that starts a kernel in the sandbox.

    Parameters
    ----------
    shared : Path
        The folder of the kernel's connection file and sockets, the only part of the machine's
        files that the kernel can write.
    limits : Limits
    user : int
        The user id of the kernel when the grader runs as root. No two kernels share one, so that
        the limit on processes counts one submission only.
    """
    python = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    return sandboxed([*python, "--HistoryManager.enabled=False"], shared, limits, user)


def bare_kernel_command() -> list[str]:
    """Return the command that starts a kernel with nothing around it."""
    return [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def environment(writable: str = "/tmp") -> dict[str, str]:
    """Return the environment of a kernel: nothing of the grader's own leaks into it."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": writable,
        "IPYTHONDIR": f"{writable}/ipython",
        "MPLCONFIGDIR": f"{writable}/matplotlib",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(IN_KERNEL),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # the same submission gives the same score twice
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def sandboxed(command: list[str], shared: Path, limits: Limits, user: int) -> list[str]:
    """Wrap `command` in the sandbox; see `kernel_command` for the arguments."""
    as_root = os.geteuid() == 0
    # The sandbox's own first process keeps the environment it was started with, and a student's
    # code may read that if both run as one user: it must not hold the grader's secret.
    bwrap = ["env", "-i", f"PATH={os.environ['PATH']}", "bwrap"]
    bwrap += ["--die-with-parent", "--new-session", "--clearenv"]
    bwrap += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    if not as_root:
        bwrap += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    for name, value in environment().items():
        bwrap += ["--setenv", name, value]
    bwrap += ["--proc", "/proc", "--dev", "/dev"]
    bwrap += ["--size", str(limits.scratch_bytes), "--perms", "1777", "--tmpfs", "/tmp"]
    for path in _readable():
        bwrap += _parents(path)
        link = path.is_symlink() and path.parent == Path("/")  # /lib -> usr/lib
        bwrap += ["--symlink", os.readlink(path), path] if link else ["--ro-bind", path, path]
    for package in _reference_packages():
        bwrap += ["--tmpfs", package]
    bwrap += [*_parents(shared), "--bind", shared, shared]
    bwrap += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--"]
    limit = ["prlimit", f"--as={limits.memory_bytes}", f"--cpu={limits.cpu_seconds}"]
    limit += [f"--nproc={limits.processes}", f"--fsize={limits.file_bytes}", "--core=0", "--"]
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    drop += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
    return list(map(str, bwrap)) + limit + (drop if as_root else []) + command


def _readable() -> list[Path]:
    """List what a kernel has to read: the system's libraries and the Python that runs us."""
    system = [Path(name) for name in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")]
    system += [Path("/etc/ld.so.cache"), Path("/etc/alternatives"), Path("/etc/localtime")]
    python = [Path(sys.prefix), Path(sys.base_prefix), *_package_folders(), IN_KERNEL]
    return [path for path in dict.fromkeys(system + python) if path.exists()]


def _package_folders() -> list[Path]:
    folders = {*site.getsitepackages(), site.getusersitepackages()}
    return [Path(folder) for folder in sys.path if folder in folders]


def _reference_packages() -> list[Path]:
    """List the installed packages that hold answers; they are hidden from students."""
    names = ("posenc", "posenc_grader")
    return [f / name for f in _package_folders() for name in names if (f / name).is_dir()]


def _parents(path: Path) -> list[str]:
    """Create the folders above `path` so that others than root may pass through them."""
    above = [p for p in reversed(path.parents) if p != Path("/") and p != Path("/tmp")]
    return [word for folder in above for word in ("--perms", "0755", "--dir", str(folder))]


ESCAPES = """
import glob, json, os, pathlib, resource, socket, sys

def possible(attempt):
    try:
        attempt()
        return True
    except Exception:
        return False

print(json.dumps({
    "started": True,
    "runs as root": os.geteuid() == 0,
    "reaches the network": possible(lambda: socket.create_connection(("1.1.1.1", 53), 1)),
    "sees a network interface": len(socket.if_nameindex()) > 1,
    "reads the grader's files": possible(lambda: open(sys.argv[1]).read()),
    "reads the grader's environment": any(
        possible(lambda: open(name, "rb").read().index(b"SANDBOX_BAIT"))
        for name in glob.glob("/proc/*/environ")
    ),
    "writes beside Python": possible(lambda: pathlib.Path(sys.prefix, "x").write_text("x")),
    "writes to the system": possible(lambda: pathlib.Path("/usr/x").write_text("x")),
    "sees other processes": len([p for p in os.listdir("/proc") if p.isdigit()]) > 4,
    "has no memory limit": resource.getrlimit(resource.RLIMIT_AS)[0] < 0,
    "has no limit on processes": resource.getrlimit(resource.RLIMIT_NPROC)[0] < 0,
    "has no limit on files": resource.getrlimit(resource.RLIMIT_FSIZE)[0] < 0,
}))
"""


def check_sandbox(limits: Limits) -> None:
    """Try to break out of the sandbox; raise `SandboxError` if that, or starting it, works out."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise SandboxError(
            f"{' and '.join(missing)} not found. Install bubblewrap and util-linux "
            "(Debian, Ubuntu: apt install bubblewrap util-linux)."
        )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        shared = Path(folder, "shared")
        shared.mkdir()
        bait = Path(folder, "bait")
        bait.write_text("answers")
        bait.chmod(0o644)
        probe = [sys.executable, "-c", ESCAPES, str(bait)]
        command = sandboxed(probe, shared, limits, user=1_000_000 + os.getpid())
        environment = {**os.environ, "SANDBOX_BAIT": "a secret"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=environment
        )
    try:
        seen = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise SandboxError(f"bubblewrap does not start here: {done.stderr.strip()}") from None
    holes = [what for what, possible in seen.items() if possible and what != "started"]
    if holes:
        raise SandboxError(f"the sandbox has holes: a student's code {', '.join(holes)}.")
