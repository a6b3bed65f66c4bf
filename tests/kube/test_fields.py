"""What an editor may offer at a place: by the document of the kind, through references, lists and maps of any keys."""

import re

import pytest

from fleet.kube.schema import builtin, fields
from fleet.kube.schema.builtin_docs import DOCS
from fleet.kube.schema.fields import Field, Place

COMPONENTS = {
    "Box": {
        "type": "object",
        "description": "A box.",
        "required": ["lid"],
        "properties": {"lid": {"type": "boolean"}, "inner": {"allOf": [{"$ref": "#/x/Box"}], "description": "Within."}},
    },
}
DOCUMENT = {
    "type": "object",
    "properties": {
        "boxes": {"type": "array", "items": {"$ref": "#/x/Box"}},
        "named": {"type": "object", "additionalProperties": {"$ref": "#/x/Box"}},
        "either": {"x-kubernetes-int-or-string": True},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "long": {"type": "string", "description": "word " * 100},
        "enforced": {"type": "string", "enum": ["a", "b"], "description": "One of c, d."},
    },
}
LID, INNER = Field("lid", "boolean", "", True), Field("inner", "object", "Within.", False)


def at(*path: str) -> Place:
    return fields.at(DOCUMENT, COMPONENTS, path)


def test_it_tells_the_fields_of_the_top():
    assert [(each.name, each.type) for each in at().fields][:4] == [
        ("boxes", "array"),
        ("named", "object"),
        ("either", "int-or-string"),
        ("open", "object"),
    ]


def test_it_goes_into_lists_and_maps_and_follows_references_without_end():
    assert at("boxes", fields.ENTRY).fields == at("named", "any.key/at all").fields == (LID, INNER)
    assert at("boxes", "0", *["inner"] * 29).description == "Within."


@pytest.mark.parametrize("path", [("nowhere",), ("open", "x"), ("either", "x"), ("boxes", "0", "lid", "x")])
def test_it_has_nothing_where_the_schema_says_nothing(path):
    assert at(*path) == Place()


def test_it_cuts_long_words():
    assert len(at("long").description) == 300 and at("long").description.endswith("…")


def test_it_offers_what_is_enforced_before_what_is_named():
    assert at("enforced").choices == ("a", "b")
    assert at("boxes", "0", "lid").choices == ("true", "false")


@pytest.mark.parametrize(
    ("told", "choices"),
    [
        ("How it is pulled: Always, IfNotPresent or Never.", ("Always", "IfNotPresent", "Never")),
        ("Always, Never (default) or ExitCode.", ("Always", "Never", "ExitCode")),
        ("How they meet. One of c10d, etcd, etcd-v2.", ("c10d", "etcd", "etcd-v2")),
        ("Processes of a node: auto, cpu, gpu or a number.", ()),
        ("Where it comes from: a file, or the pod itself.", ()),
        ("What goes at the end.", ()),
    ],
)
def test_it_reads_the_choices_a_description_names(told, choices):
    document = {"type": "object", "properties": {"x": {"type": "string", "description": told}}}
    assert fields.at(document, {}, ["x"]).choices == choices


def test_every_word_about_a_built_in_type_is_about_one_of_its_fields():
    types = {name: each for kind in ("Pod", "Job", "Node") for name, each in builtin.documents(kind).items()}
    told = [name.split(".") for name in DOCS if re.match(r"(Pod|Container|Env|Volume|Toleration|Job)\w*\.", name)]
    assert [name for name, field in told if field not in types[name]["properties"]] == []
