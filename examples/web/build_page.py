"""Put together a web page in which a policy heats the house of examples/heating, without Python and JAX.

    python build_page.py RUN OUT
    python -m http.server --bind 127.0.0.1 --directory OUT

RUN is a run on the logs of examples/heating. OUT gets the files of this folder, the policy as an ONNX model with its
contract, and onnxruntime-web, which npm downloads. The page asks for nothing else.
"""

import argparse
import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import edp
from edp.errors import UserError
from edp.files import write_errors

sys.path.append(str(Path(__file__).parents[1] / "heating"))

import heating

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = "sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
OWN = (".html", ".css", ".js")


def fetch(folder: Path) -> Path:
    """The package as npm downloads it, or has it in its cache."""
    npm = shutil.which("npm")
    if npm is None:
        raise UserError(f"needs npm, or {PACKAGE} {VERSION} as a file: --package {PACKAGE}-{VERSION}.tgz")
    words = [npm, "pack", f"{PACKAGE}@{VERSION}", "--prefer-offline", "--pack-destination", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        why = next((line for line in done.stderr.splitlines() if "error" in line), "it does not say why")
        raise UserError(f"npm could not download {PACKAGE} {VERSION}: {why}")
    return folder / f"{PACKAGE}-{VERSION}.tgz"


def unpack(package: Path, folder: Path) -> None:
    """Write the files that the page needs, if the package is the one that was tested."""
    try:
        content = package.read_bytes()
    except OSError as error:
        raise UserError(f"{package}: cannot be read ({error.strerror})") from None
    found = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != INTEGRITY:
        raise UserError(f"{package}: is not {PACKAGE} {VERSION} (its digest is another one)")
    folder.mkdir()
    with tarfile.open(package) as archive:
        for name in RUNTIME:
            member = archive.extractfile(f"package/dist/{name}")
            assert member is not None
            (folder / name).write_bytes(member.read())


def check_signals(contract: dict[str, Any]) -> None:
    """Refuse a policy that sees or sets what the house does not have."""
    seen, actions = ([entry["name"] for entry in contract[side]] for side in ("observations", "actions"))
    if not set(seen) <= set(heating.OBSERVATIONS) or actions != list(heating.ACTIONS):
        both = f"sees {', '.join(seen)} and sets {', '.join(actions)}"
        raise UserError(f"the policy {both}: give a run on the logs of examples/heating")


def build(run: edp.LoadedPolicy | Path, out: Path, package: Path | None = None) -> None:
    """Make everything in a temporary folder first, so that nothing is half-written."""
    built = (out / "page.js").exists() and (out / "policy.json").exists()
    if out.exists() and not built and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: exists, and is not a page of this script; name another folder")
    with tempfile.TemporaryDirectory() as name, write_errors(out):
        page = Path(name, "page")
        page.mkdir()
        check_signals(edp.export(run, page / "policy.onnx").contract)
        unpack(package or fetch(Path(name)), page / "onnxruntime")
        for path in Path(__file__).parent.iterdir():
            if path.suffix in OWN:
                shutil.copyfile(path, page / path.name)
        shutil.copytree(page, out, dirs_exist_ok=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--package", type=Path, help=f"{PACKAGE}-{VERSION}.tgz, if npm cannot download it")
    args = parser.parse_args(argv)
    try:
        build(args.run, args.out, args.package)
    except UserError as error:
        print(f"build_page.py: {error}", file=sys.stderr)
        return 2
    print(f"{args.out}: serve it with  python -m http.server --bind 127.0.0.1 --directory {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
