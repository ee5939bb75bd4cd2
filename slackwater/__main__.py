"""`python -m slackwater` is the command line."""

from slackwater.cli import main

if __name__ == "__main__":
    main()
