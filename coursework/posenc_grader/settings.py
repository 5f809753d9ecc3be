"""The nbgrader configuration of a course folder.

``nbgrader_config.py`` calls `configure`; so do the commands of this package. nbgrader's own
commands, formgrader and exchange therefore grade in the same sandbox, with the same checks.
"""

import os
import secrets
import sys
from pathlib import Path

from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    DeduplicateIds,
    LimitOutput,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets.config import Config

from posenc_grader.feedback import FeedbackExporter, GetMarks
from posenc_grader.grading import InsertProbes, JudgeProbes, RestoreLayout
from posenc_grader.kernel import SandboxedExecute
from posenc_grader.sandbox import Limits

# nbgrader starts `alembic` by name whenever it makes a gradebook; let it be found also where the
# environment that we run in is not activated.
if (beside_python := str(Path(sys.executable).parent)) not in os.environ["PATH"].split(":"):
    os.environ["PATH"] = f"{beside_python}:{os.environ['PATH']}"

STUB = 'raise NotImplementedError("not written yet")'


def configure(
    config: Config, course: Path, *, sandboxed: bool = True, limits: Limits | None = None
) -> Config:
    """Set up nbgrader for a course folder.

    Parameters
    ----------
    config : traitlets.config.Config
        Changed in place, and returned.
    course : Path
        The folder with ``source/`` and ``checks/``.
    sandboxed : bool
        False runs student code on the bare machine.
    limits : Limits, optional
    """
    course = course.resolve()
    config.CourseDirectory.root = str(course)
    config.ClearSolutions.code_stub = {"python": STUB}
    config.ClearSolutions.text_stub = "*Your answer.*"

    config.RestoreLayout.release = str(course / "release")
    for probes in ("InsertProbes", "JudgeProbes"):
        config[probes].checks = str(course / "checks")
        config[probes].secret = secret(course)
    config.OverwriteCells.add_missing_cells = True
    config.SandboxedKernelManager.sandboxed = sandboxed
    config.SandboxedExecute.limits = limits or Limits()
    config.Autograde.sanitize_preprocessors = [
        RestoreLayout,
        ClearOutput,
        DeduplicateIds,
        OverwriteKernelspec,
        OverwriteCells,
        CheckCellMetadata,
    ]
    config.Autograde.autograde_preprocessors = [
        InsertProbes,
        SandboxedExecute,
        JudgeProbes,
        LimitOutput,
        SaveAutoGrades,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    config.GenerateFeedback.preprocessors = [GetMarks]
    config.GenerateFeedback.exporter_class = FeedbackExporter
    config.HTMLExporter.sanitize_html = True  # what formgrader shows to the teacher
    return config


def secret(course: Path) -> str:
    """Return the teacher's secret: ``COURSEWORK_SECRET`` if set, else the course's own.

    A course without a secret gets one, in the file ``secret``, readable by its owner only.
    """
    if given := os.environ.get("COURSEWORK_SECRET"):
        return given
    path = course / "secret"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_hex(16) + "\n")
    return path.read_text().strip()
