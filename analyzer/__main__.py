"""`python -m analyzer` is `locality`."""

from analyzer.cli import main

main(prog_name="locality")
