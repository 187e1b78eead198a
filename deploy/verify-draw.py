#!/usr/bin/env python3
"""Verifies the draw of a waiting room from its published data, and prints the place of each given ticket.

    python3 verify-draw.py https://tickets.example.org/shows/<show> [ticket number ...]
    python3 verify-draw.py queue.json [ticket number ...]      (a saved answer of GET .../queue)

Note the commitment before opening and pass it as --commitment: this proves that the key has not changed since.
Needs only Python 3.8 and shares no code with the server: it implements docs/api.md, "The draw".
Exits with 0 if the draw is valid, 1 if it is not, 2 if it cannot be verified.
"""
import argparse
import hashlib
import hmac
import json
import math
import sys
import urllib.request

METHOD = b"rowlock-draw-1"
ROUNDS = 10
GROUPS = 20
MAX_SAMPLES = 40_000


def permutation(key, people):
    """Returns the function from ticket number to place: a Feistel network with cycle walking."""
    side = math.isqrt(people - 1) + 1 if people else 1

    def f(r, half):
        message = METHOD + people.to_bytes(8, "big") + bytes([r]) + half.to_bytes(8, "big")
        return int.from_bytes(hmac.new(key, message, hashlib.sha256).digest()[:8], "big") % side

    def encrypt(value):
        left, right = divmod(value, side)
        for r in range(ROUNDS):
            left, right = right, (left + f(r, right)) % side
        return left * side + right

    def place_of(number):
        if number >= people:
            return number
        place = encrypt(number)
        while place >= people:
            place = encrypt(place)
        return place

    return place_of


def read(source):
    if source.startswith(("http://", "https://")):
        base, _, show = source.rstrip("/").rpartition("/shows/")
        with urllib.request.urlopen(f"{base}/api/v1/shows/{show}/queue", timeout=30) as answer:
            return json.load(answer)
    with open(source, encoding="utf-8") as file:
        return json.load(file)


def chi_square(place_of, people):
    """Compares arrival order and drawn order of evenly chosen tickets; returns the deviation in standard deviations."""
    step = max(1, people // MAX_SAMPLES)
    numbers = range(0, people, step)
    cells = [[0] * GROUPS for _ in range(GROUPS)]
    for number in numbers:
        cells[number * GROUPS // people][place_of(number) * GROUPS // people] += 1
    expected = len(numbers) / GROUPS**2
    statistic = sum((count - expected) ** 2 / expected for row in cells for count in row)
    freedom = (GROUPS - 1) ** 2
    return (statistic - freedom) / math.sqrt(2 * freedom)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("source", help="address of the show, or a file")
    arguments.add_argument("tickets", nargs="*", type=int, help="ticket numbers whose places are printed")
    arguments.add_argument("--commitment", help="the commitment noted before opening")
    arguments = arguments.parse_intermixed_args()
    view = read(arguments.source)
    draw = view["draw"]
    if draw["method"] != METHOD.decode():
        print(f"unknown method of the draw: {draw['method']}")
        return 2
    if not draw.get("key"):
        print(f"not open yet; note the commitment: {draw['commitment']}")
        return 2
    key, people = bytes.fromhex(draw["key"]), draw["people"]
    is_valid = True

    def check(name, passed):
        nonlocal is_valid
        is_valid = is_valid and passed
        print(f"{'ok   ' if passed else 'WRONG'} {name}")

    check("the key matches the published commitment", hashlib.sha256(key).hexdigest() == draw["commitment"])
    if arguments.commitment:
        check("the commitment matches the one you noted", arguments.commitment.strip().lower() == draw["commitment"])
    place_of = permutation(key, people)
    if view.get("number") is not None and view.get("place") is not None:
        check("your place matches the draw", place_of(view["number"]) == view["place"])
    if people <= MAX_SAMPLES:
        check("each ticket has exactly one place", sorted(map(place_of, range(people))) == list(range(people)))
    if people >= 5 * GROUPS**2:
        check("places do not depend on the order of arrival", abs(chi_square(place_of, people)) < 5)
    for ticket in arguments.tickets:
        print(f"ticket {ticket}: place {place_of(ticket)}")
    return 0 if is_valid else 1


if __name__ == "__main__":
    sys.exit(main())
