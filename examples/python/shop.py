"""A world made by a factory: functions by their names, bound to fresh state."""


def fresh_world():
    stock = {"tea": 2, "salt": 9}

    def check(item: str) -> str:
        """Counts the packs of an item."""
        if item not in stock:
            raise KeyError(f"no item {item}")
        return f"{stock[item]} packs"

    def order(item: str, amount: int) -> str:
        """Orders packs of an item."""
        if amount < 1:
            raise ValueError("an order needs an amount")
        stock[item] = stock.get(item, 0) + amount
        return f"{stock[item]} packs"

    return {"check": check, "order": order}
