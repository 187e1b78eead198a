#!/usr/bin/env python3
"""Checks the draw of a waiting room from what is published about it, and says which place each ticket has.

    python3 verify-draw.py https://tickets.example.org/shows/<show> [ticket number ...]
    python3 verify-draw.py queue.json [ticket number ...]      (a saved answer of GET .../queue)

Note the commitment before opening, and give it as --commitment: then nobody can have changed the key since.
Needs nothing but Python 3.8 and shares no code with the server: it follows docs/api.md, "The draw".
Ends with 0 when the draw is as promised, 1 when it is not, 2 when it cannot be told.
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
PEOPLE_LOOKED_AT = 40_000


def drawer(key, people):
    side = math.isqrt(people - 1) + 1 if people else 1

    def f(r, half):
        said = METHOD + people.to_bytes(8, "big") + bytes([r]) + half.to_bytes(8, "big")
        return int.from_bytes(hmac.new(key, said, hashlib.sha256).digest()[:8], "big") % side

    def once(value):
        left, right = divmod(value, side)
        for r in range(ROUNDS):
            left, right = right, (left + f(r, right)) % side
        return left * side + right

    def place_of(number):
        if number >= people:
            return number
        place = once(number)
        while place >= people:
            place = once(place)
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
    """Groups by coming against groups by place, over evenly chosen tickets: distance from even, in deviations."""
    step = max(1, people // PEOPLE_LOOKED_AT)
    numbers = range(0, people, step)
    cells = [[0] * GROUPS for _ in range(GROUPS)]
    for number in numbers:
        cells[number * GROUPS // people][place_of(number) * GROUPS // people] += 1
    expected = len(numbers) / GROUPS**2
    found = sum((count - expected) ** 2 / expected for row in cells for count in row)
    freedom = (GROUPS - 1) ** 2
    return (found - freedom) / math.sqrt(2 * freedom)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("source", help="address of the show, or a file")
    arguments.add_argument("tickets", nargs="*", type=int, help="ticket numbers whose places to tell")
    arguments.add_argument("--commitment", help="the commitment as it was noted before opening")
    arguments = arguments.parse_intermixed_args()
    view = read(arguments.source)
    draw = view["draw"]
    if draw["method"] != METHOD.decode():
        print(f"this draw is made by {draw['method']}, which is not known here")
        return 2
    if not draw.get("key"):
        print(f"not open yet; note the commitment: {draw['commitment']}")
        return 2
    key, people = bytes.fromhex(draw["key"]), draw["people"]
    good = True

    def check(name, kept):
        nonlocal good
        good = good and kept
        print(f"{'ok   ' if kept else 'WRONG'} {name}")

    check("the key is the one that was committed to", hashlib.sha256(key).hexdigest() == draw["commitment"])
    if arguments.commitment:
        check("the commitment is the one you noted", arguments.commitment.strip().lower() == draw["commitment"])
    place_of = drawer(key, people)
    if view.get("number") is not None and view.get("place") is not None:
        check("your place is the one that was drawn", place_of(view["number"]) == view["place"])
    if people <= PEOPLE_LOOKED_AT:
        check("everybody has a place, and nobody two", sorted(map(place_of, range(people))) == list(range(people)))
    if people >= 5 * GROUPS**2:
        check("when one came says nothing about one's place", abs(chi_square(place_of, people)) < 5)
    for ticket in arguments.tickets:
        print(f"ticket {ticket}: place {place_of(ticket)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
