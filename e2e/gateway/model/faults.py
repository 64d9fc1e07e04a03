"""Faults that a script asks for: refusals that pass, and answers that break."""

from refusal import Refused

WORDS = {
    429: "Rate limit reached. Please try again in 1s.",
    500: "The server had an error while processing your request.",
    529: "Overloaded",
}


class Faults:
    """Counts of the faults that each question has met: the same question is answered after that."""

    def __init__(self):
        self.met = {}

    def next(self, key, fault):
        """The fault of this answer; None when the script's number of them is over."""
        if fault is None:
            return None
        name, times = fault
        self.met[key] = self.met.get(key, 0) + 1
        return name if self.met[key] <= times else None


def refuse(name):
    """Raises the refusal of a fault that is a status."""
    if name and name.isdigit():
        raise Refused(WORDS[int(name)], int(name))
