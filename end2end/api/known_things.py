"""Puts the city, the theatre and the show of the demo into addresses; made-up ones are 404 and show little else.

An address that is meant to be wrong stays wrong.
"""

import os

import schemathesis
from schemathesis.core.parameters import ParameterLocation

THEATRE = "aurora-lisbon"
SHOW = os.environ["SHOW"]
# Another one, for what ends a show or takes it away: all else would be refused from then on.
SHOW_TO_END = os.environ["SHOW_TO_END"]
ENDS_A_SHOW = {
    "/api/v1/theatres/{theatre}/programme/{show}/cancel",
    "/api/v1/theatres/{theatre}/programme/{show}/move",
}

# `{id}` is another thing in each of these.
IDS = {
    "/api/v1/cities/{id}/theatres": "lisbon",
    "/api/v1/theatres/{id}/shows": THEATRE,
    "/api/v1/shows/{id}": SHOW,
    "/api/v1/shows/{id}/plan": SHOW,
    "/api/v1/shows/{id}/dots": SHOW,
}


@schemathesis.hook
def before_call(context, case, kwargs):
    if not case.path_parameters or case.meta is None or case.meta.is_negative_at(ParameterLocation.PATH):
        return
    show = SHOW_TO_END if case.path in ENDS_A_SHOW else SHOW
    known = {"theatre": THEATRE, "show": show, "id": IDS.get(case.path)}
    for name, value in known.items():
        if name in case.path_parameters and value is not None:
            case.path_parameters[name] = value
