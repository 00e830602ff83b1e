"""Random sums of products over different dimensions, and of other values."""

from random import Random

from graph_text import Program

SIZES = {"M": 19, "N": 37, "H": 3, "R": 2, "E": 20, "G": 33, "K": 50}
SUMMED = ("K", "HE", "HRE", "HG", "GK")
"""What products sum over."""


def program(seed: int, element: str = "f32", terms: int = 6) -> str:
    """Return the sum of that many terms of M x N or less, in a random order."""
    random, p = Random(seed), Program(SIZES, element, "f32")
    values: list[str] = []
    for number in range(terms):
        dims = random.choice(("", *SUMMED, *SUMMED))
        if dims:
            made = random.choice(("MN", "MN", "MN", "M"))
            lhs = p.argument(f"a{number}", f"M{dims}")
            rhs = p.argument(f"b{number}", f"N{dims}" if "N" in made else dims)
            values.append(p.contract(f"p{number}", lhs, rhs, made))
        else:
            argument = p.argument(f"x{number}", random.choice(("MN", "NM", "N")))
            values.append(p.map(f"y{number}", "exp", argument))
    read_twice = random.choice(values)
    for number in range(terms - 1):
        lhs, rhs = (values.pop(random.randrange(len(values))) for _ in range(2))
        values.append(p.map(f"s{number}", "add", lhs, rhs))
    (total,) = values
    if random.random() < 0.3:
        total = p.map("more", "mult", total, read_twice)
    return p.returning(total)
