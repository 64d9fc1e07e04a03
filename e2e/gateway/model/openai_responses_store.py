"""State that OpenAI keeps of responses: items by id, responses, conversations. It goes with the process."""

from refusal import Refused, check
from signatures import read, sign

MOST = 5_000


class Store:
    def __init__(self):
        # An item's id, with its item if that is stored, and the reasoning and the follower that belong to it.
        self.items, self.stored = {}, {}
        self.responses, self.conversations = {}, {}

    def keep(self, kept, id, value):
        kept[id] = value
        while len(kept) > MOST:
            del kept[next(iter(kept))]

    def create_conversation(self, number, items=()):
        id = f"conv_{number}"
        self.keep(self.conversations, id, list(items))
        return {"id": id, "object": "conversation", "created_at": 1, "metadata": {}}

    def history(self, body):
        """The items before those of the request: of a chain of responses, or of a conversation."""
        previous, conversation = body.get("previous_response_id"), body.get("conversation")
        both = "Mutually exclusive parameters: ensure you are only providing one of: 'previous_response_id' or 'conversation'."
        check(previous is None or conversation is None, both, code="mutually_exclusive_parameters")
        if previous is not None:
            found = self.responses.get(previous)
            missing = f"Previous response with id '{previous}' not found."
            check(found is not None, missing, param="previous_response_id", code="previous_response_not_found")
            return found["items"]
        if conversation is not None:
            id = conversation["id"] if isinstance(conversation, dict) else conversation
            missing = f"Conversation with id '{id}' not found."
            check(id in self.conversations, missing, 404)
            return self.conversations[id]
        return []

    def resolve(self, items, is_stateless):
        """Items with their references replaced by what is stored."""
        return [self.resolve_one(item, is_stateless) for item in items]

    def resolve_one(self, item, is_stateless):
        id, kind = item.get("id"), item.get("type")
        is_bare = kind == "reasoning" and not item.get("encrypted_content")
        if kind != "item_reference" and not is_bare:
            return item
        if id in self.stored:
            return self.stored[id]
        hint = "Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
        raise Refused(f"Item with id '{id}' not found.{' ' + hint if is_stateless else ''}", 404, param="input")

    def record(self, request, history, items, response):
        """Keeps a response, its items, and which of them belong together."""
        output, body = response["output"], request.body
        reasoning = None
        for item, follower in zip(output, [*output[1:], None]):
            if item["type"] == "reasoning":
                reasoning = item["id"]
            self.keep(self.items, item["id"], {"reasoning": reasoning, "follower": follower and follower["id"]})
        if body.get("store") is False or not request.is_kept:
            return
        for item in output:
            self.keep(self.stored, item["id"], item)
        self.keep(self.responses, response["id"], {"items": [*history, *items, *output], "response": response})
        if conversation := body.get("conversation"):
            id = conversation["id"] if isinstance(conversation, dict) else conversation
            self.conversations[id] = [*self.conversations[id], *items, *output]


def encrypt(number, text):
    return "gAAAA" + sign("reasoning", "", number=number, text=text)


def is_own(encrypted):
    return encrypted.startswith("gAAAA") and read("reasoning", "", encrypted[5:]) is not None
