"""`python -m analyzer` is `locality`."""

from analyzer.cli import main

if __name__ == "__main__":  # a process that it starts imports this file once more
    main(prog_name="locality")
