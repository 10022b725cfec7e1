"""Finds the plug-ins: each file of a plug-in folder holds one, in a constant named after the folder.

It decides nothing about them; a file that cannot be imported fails loudly, with its path.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any


@cache
def plugins(folder: str) -> dict[str, Any]:
    """All plug-ins of a folder (`dialects`, `renderers`, ...) by name, in order of their file names.

    A file whose name starts with an underscore is a helper. Raises ImportError naming the file that
    failed, lacks its constant, or takes a name that another has.
    """
    package = importlib.import_module(f"analyzer.{folder}")
    constant = folder.removesuffix("s").upper()
    found: dict[str, Any] = {}
    for root in package.__path__:
        for module in sorted(pkgutil.iter_modules([root]), key=lambda item: item.name):
            if not module.name.startswith("_"):
                plugin = _load(Path(root) / f"{module.name}.py", f"analyzer.{folder}.{module.name}", constant)
                if plugin.name in found:
                    raise ImportError(
                        f"two {folder} are named {plugin.name!r}; the second is {module.name}.py"
                    )
                found[plugin.name] = plugin
    return found


def describe(folder: str) -> list[tuple[str, str]]:
    """Name and first docstring line of every plug-in of a folder, as `locality list` prints them."""
    rows = []
    for name, plugin in plugins(folder).items():
        doc = (type(plugin).__doc__ or "").strip()
        rows.append((name, doc.partition("\n")[0]))
    return rows


def _load(path: Path, module_name: str, constant: str) -> Any:
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise ImportError(f"the plug-in {path} cannot be loaded: {error}") from error
    try:
        return getattr(module, constant)
    except AttributeError:
        raise ImportError(f"the plug-in {path} has no constant {constant}") from None
