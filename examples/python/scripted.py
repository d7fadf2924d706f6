"""What the models of the agents here say when none is configured: it exercises all that may come of a call."""


def script():
    yield [("check", '{"item": "tea"}'), ("check", '{"item": "salt"}')]
    yield [("order", '{"item": "tea", "amount": 0}')]  # the tool refuses it
    yield [("restock", "{}")]  # there is no such tool
    yield [("order", '{"item": "tea", "amount": 40}'), ("check", '{"item": "tea"}')]
    yield "Tea is ordered."
