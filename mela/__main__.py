"""`python -m mela`, for where the command itself is not on the path."""

from mela.cli.main import main

if __name__ == "__main__":
    main()
