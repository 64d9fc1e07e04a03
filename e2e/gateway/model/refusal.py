"""A request that the provider does not take, and the request as the rules read it."""

from dataclasses import dataclass, field


class Refused(Exception):
    """A refusal in no dialect's form yet. `fields` go into the error as they are: param, code, details."""

    def __init__(self, message, status=400, **fields):
        super().__init__(message)
        self.status, self.fields = status, fields


def check(is_right, message, status=400, **fields):
    if not is_right:
        raise Refused(message, status, **fields)


@dataclass
class Request:
    """One request: `number` is its own among all, `betas` are those of Anthropic's header.

    An answer that breaks off is cancelled, and a provider that keeps history does not keep it.
    """

    body: dict
    number: int = 1
    is_streamed: bool = False
    betas: frozenset = field(default_factory=frozenset)
    is_kept: bool = True

    @property
    def model(self):
        return self.body.get("model") or ""
