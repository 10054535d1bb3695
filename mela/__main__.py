"""Run `python -m mela`, for when the command itself is not on the path."""

from mela.cli.main import main

if __name__ == "__main__":
    main()
