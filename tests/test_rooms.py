"""Who may import whom: read off the source, so that a room cannot grow a back door."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"mitmproxy", "transformers", "jinja2", "sqlalchemy", "numpy", "rich", "tokenizers", "fastokens"}
PURE = (
    "core",
    "blocks",
    "pool",
    "kv_layout",
    "model_layers",
    "group_tables",
    "group_lookup",
    "grouped_cache",
    "cache",
    "replay",
    "pool_sweep",
    "unknown_ids",
    "compare",
    "sse",
    "sourced",
    "sourced_json",
    "sourced_format",
    "sourced_repr",
    "lineage",
    "mismatch",
    "answers",
    "generated",
    "prefix_encoding",
    "shared_json",
    "told",
    "report",
    "prefill_rate",
    "cause_totals",
    "known_sums",
    "finding_groups",
    "comparison",
    "wording",
    "shared_wraps",
    "body_paths",
    "fields",
    "joining",
    "pieces",
    "first_run",
    "text_changes",
    "moments",
    "volatile_shapes",
)
"""Files of the analyzer that do no I/O and know no other package but numpy."""

STARTS_THE_PROXY = {
    "analyzer/capturing.py",
    "analyzer/cli_capture.py",
    "analyzer/cli_traces.py",
    "analyzer/sealing_process.py",
}


def imports_of(path: Path) -> set[str]:
    """Every module a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def packages_of(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports_of(path)}


def files(pattern: str) -> list[Path]:
    found = sorted(ROOT.glob(pattern))
    assert found, f"no files match {pattern}"
    return found


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", files("store/*.py"), ids=named)
def test_the_store_knows_no_other_room(path: Path) -> None:
    strangers = {"proxy", "analyzer", "mitmproxy", "transformers", "jinja2", "click", "numpy"}
    assert packages_of(path) & strangers == set()


@pytest.mark.parametrize("path", files("proxy/*.py"), ids=named)
def test_the_proxy_knows_the_store_and_not_the_analyzer(path: Path) -> None:
    assert packages_of(path) & {"analyzer", "transformers", "jinja2", "click", "sqlalchemy"} == set()


@pytest.mark.parametrize("path", files("analyzer/**/*.py"), ids=named)
def test_only_the_capturing_commands_know_the_proxy(path: Path) -> None:
    knows = bool(packages_of(path) & {"proxy", "mitmproxy"})
    assert not knows or named(path) in STARTS_THE_PROXY


@pytest.mark.parametrize("name", PURE)
def test_a_pure_file_imports_only_pure_files_and_numpy(name: str) -> None:
    path = ROOT / "analyzer" / f"{name}.py"
    foreign = {package for package in packages_of(path) if package not in sys.stdlib_module_names}
    assert foreign <= {"numpy", "analyzer"}
    own = {item.split(".")[1] for item in imports_of(path) if item.startswith("analyzer.")}
    assert own <= set(PURE)


@pytest.mark.parametrize("path", files("analyzer/*/[a-z]*.py"), ids=named)
def test_a_plug_in_knows_neither_its_siblings_nor_the_pipeline(path: Path) -> None:
    folder = path.parent.name
    folders = {item.parent.name for item in files("analyzer/*/__init__.py")}
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] == "analyzer" and len(parts) > 1:
            assert parts[1] not in ("pipeline", "cli"), name
            assert parts[1] not in folders - {folder}, f"{name} is another plug-in folder"
            inside = len(parts) > 2 and parts[1] == folder and not parts[2].startswith("_")  # a helper
            sibling = inside and (path.parent / f"{parts[2]}.py").exists()
            assert not sibling, f"{name} is a sibling"


def test_help_is_printed_without_loading_anything_heavy() -> None:
    script = "import sys, analyzer.cli; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert set(loaded.stdout.split()) & HEAVY == set()


@pytest.mark.parametrize(
    "path", files("store/*.py") + files("proxy/*.py") + files("analyzer/**/*.py"), ids=named
)
def test_files_and_functions_stay_small(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.split("\n")) <= 300
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, node.name
            assert len(node.args.posonlyargs) + len(node.args.args) <= 6, (
                f"{node.name} takes too many by position"
            )
