"""Replaces path parameters by the demo's city, theatre and show: generated ids only lead to 404.

Paths that are invalid on purpose stay unchanged.
"""

import os

import schemathesis
from schemathesis.core.parameters import ParameterLocation

THEATRE = "aurora-lisbon"
SHOW = os.environ["SHOW"]
# A second show, for operations that cancel or move it: all later calls for it would be refused.
SHOW_TO_END = os.environ["SHOW_TO_END"]
ENDS_A_SHOW = {
    "/api/v1/theatres/{theatre}/programme/{show}/cancel",
    "/api/v1/theatres/{theatre}/programme/{show}/move",
}

# `{id}` has a different meaning in each of these paths.
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
