"""python -m stallwise"""

from stallwise.cli import run

if __name__ == "__main__":
    run()
