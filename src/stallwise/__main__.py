"""python -m stallwise"""

from stallwise.surfaces.cli import run

if __name__ == "__main__":
    run()
