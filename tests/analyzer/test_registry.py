"""The registry finds each plug-in once, and refuses what would hide another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer import registry


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty plug-in folder `analyzer.gadgets`."""
    import analyzer

    made = tmp_path / "gadgets"
    made.mkdir()
    (made / "__init__.py").write_text("")
    monkeypatch.setattr(analyzer, "__path__", [*analyzer.__path__, str(tmp_path)])
    registry.plugins.cache_clear()
    yield made
    registry.plugins.cache_clear()
    for name in [name for name in sys.modules if name.startswith("analyzer.gadgets")]:
        del sys.modules[name]


def plugin(name: str) -> str:
    return f'class G:\n    """What {name} is for.\n\n    More."""\n    name = "{name}"\n\n\nGADGET = G()\n'


def test_every_file_is_found_by_its_constant_and_described_by_its_docstring(folder: Path) -> None:
    (folder / "b.py").write_text(plugin("second"))
    (folder / "a.py").write_text(plugin("first"))
    (folder / "_helper.py").write_text("raise RuntimeError('a helper is not a plug-in')")
    assert registry.describe("gadgets") == [
        ("first", "What first is for."),
        ("second", "What second is for."),
    ]


def test_two_of_one_name_are_refused_with_the_file(folder: Path) -> None:
    (folder / "a.py").write_text(plugin("same"))
    (folder / "b.py").write_text(plugin("same"))
    with pytest.raises(ImportError, match=r"two gadgets are named 'same'; the second is b\.py"):
        registry.plugins("gadgets")


def test_a_file_that_cannot_be_loaded_is_named_with_its_path(folder: Path) -> None:
    (folder / "broken.py").write_text("import no_such_package_anywhere")
    with pytest.raises(ImportError, match=r"broken\.py cannot be loaded: .*no_such_package_anywhere"):
        registry.plugins("gadgets")


def test_a_file_without_its_constant_is_named(folder: Path) -> None:
    (folder / "empty.py").write_text("")
    with pytest.raises(ImportError, match=r"empty\.py has no constant GADGET"):
        registry.plugins("gadgets")
