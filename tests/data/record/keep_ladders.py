"""Keep the recordings of `warpline lab … --keep KEPT` as tests/data/ladders has them.

One folder a ladder, one scrubbed file a rung, and one manifest with the times of the bare steps and the host's costs.

    python keep_ladders.py KEPT ../ladders
"""

import json
import subprocess
import sys
from pathlib import Path

KEPT = ("steps", "bare_step_ns", "recorded_step_ns", "host_costs")


def main(kept: Path, target: Path) -> None:
    for ladder in sorted(path for path in kept.iterdir() if path.is_dir()):
        folder = target / ladder.name
        folder.mkdir(parents=True, exist_ok=True)
        entries = []
        for rung in sorted(ladder.iterdir()):
            recorded = json.loads((rung / "manifest.json").read_text())["traces"][0]
            file = folder / f"{rung.name}.json.gz"
            command = ["warpline", "scrub", str(rung / recorded["file"]), "-o", str(file), "-f"]
            subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)
            entries.append({"file": file.name, **{key: recorded[key] for key in KEPT if key in recorded}})
        manifest = {"schema": "warpline.run/1", "files": [entry["file"] for entry in entries], "traces": entries}
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
