"""Check the pinned packages for known vulnerabilities, if the advisory service answers; status 1 if there are any."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMAND = [
    sys.executable,
    "-m",
    "uv",
    "tool",
    "run",
    "pip-audit==2.10.1",
    "--disable-pip",
    "--no-deps",
    "--format",
    "json",
    "--requirement",
]
SECONDS = 120


def main() -> int:
    """Print what is found, or why nothing was looked up."""
    try:
        ended = subprocess.run(
            [*COMMAND, str(ROOT / "requirements.txt")], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        packages = json.loads(ended.stdout)["dependencies"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        print(
            f"audit: left out: {type(error).__name__}; the advisory service, or the tool that asks it, is out of reach"
        )
        return 0
    known = [package for package in packages if "skip_reason" not in package]
    bad = [package for package in known if package["vulns"]]
    for package in bad:
        for found in package["vulns"]:
            fixes = ", ".join(found["fix_versions"]) or "none yet"
            print(f"audit: {package['name']} {package['version']}: {found['id']}; fixed in: {fixes}")
    print(
        f"audit: {len(bad)} of {len(known)} packages have known vulnerabilities; {len(packages) - len(known)} not known"
    )
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
