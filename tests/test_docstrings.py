"""Docstrings of the public names: numpydoc sections that say what the code says."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re

import pytest
from support import public, public_names

import holoctl as hc

TRIVIAL = {"robot_names", "ForwardDynamics", "InverseDynamics", "Certificate", "Partition",
           "Projection", "Run", "BoundRows", "Constraint", "BoundForce",
           "Force", "Task"}  # fmt: skip
"""These raise nothing: a list of names, results that the library makes, and protocols."""

WITHOUT_EXAMPLES = {
    "results.SweepError": "a worker process has to die",
    "protocols.FrameMotion": "made for `BoundTask.expression`, by the code generator",
    "protocols.LiveMotion": "made for `tick` of rows, forces and tasks, by the prepared dynamics",
    "protocols.TaskExpression": "returned by `BoundTask.expression`, for machine code",
    "protocols.TaskTick": "returned by `BoundTask.tick`: tests/codegen/test_own_task.py",
}
"""Public names without an example, and why."""

MODULES = [name for name in public_names() if inspect.ismodule(public(name))]
NAMES = [name for name in public_names() if name not in MODULES]


def sections(doc):
    """Section title to its lines, from "Title" underlined with dashes."""
    lines, found, title = inspect.cleandoc(doc).splitlines(), {"": []}, ""
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1]):
            title = line
            found[title] = []
        elif not re.fullmatch(r"-{3,}", line):
            found[title].append(line)
    return found


def entries(lines):
    """Entry name to its type: ``a, b : type`` counts for a and for b."""
    found = {}
    for line in lines:
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            found |= {name.strip(): kind for name in names.split(",")}
    return found


def public_members(cls):
    for name, member in vars(cls).items():
        inherited = any(name in vars(base) for base in cls.__mro__[1:])
        if not name.startswith("_") and not inherited:
            if isinstance(member, property):
                yield name, member.fget
            elif inspect.isfunction(member):
                yield name, member


def fields(cls):
    """What a class takes, and what a dataclass makes of it."""
    if not dataclasses.is_dataclass(cls):
        return list(inspect.signature(cls).parameters), []
    given = [f for f in dataclasses.fields(cls) if not f.name.startswith("_")]
    return [f.name for f in given if f.init], [f.name for f in given if not f.init]


def is_result(cls):
    """What the library makes, and nobody else."""
    return "Attributes" in sections(cls.__doc__) and "Parameters" not in sections(cls.__doc__)


def is_protocol(cls):
    return getattr(cls, "_is_protocol", False)


def problems(name, thing):
    """What the docstring of a public function or class lacks."""
    if not thing.__doc__:
        return ["no docstring"]
    name = name.rpartition(".")[2]
    doc = sections(thing.__doc__)
    parameters, attributes = entries(doc.get("Parameters", [])), entries(doc.get("Attributes", []))
    found = []
    if inspect.isclass(thing):
        if issubclass(thing, Exception):
            own = vars(thing).get("__init__")
            names = list(inspect.signature(own).parameters)[2:] if own else []
            found += [f"Attributes lacks {n}" for n in names if n not in attributes]
            return found
        if name in TRIVIAL and not dataclasses.is_dataclass(thing):
            return []  # a protocol
        if is_result(thing) and not dataclasses.is_dataclass(thing):
            return []
        given, made = fields(thing)
        if is_result(thing):
            return [f"Attributes lacks {n}" for n in given if n not in attributes]
        found += [f"Attributes lacks {n}" for n in made if n not in attributes]
        own = vars(thing).get("__init__")
        signature = given
        if (
            inspect.isfunction(own)
            and not dataclasses.is_dataclass(thing)
            and not is_protocol(thing)
        ):
            signature = list(inspect.signature(own).parameters)[1:]
    else:
        signature = list(inspect.signature(thing).parameters)
        if inspect.signature(thing).return_annotation not in ("None", None) and (
            "Returns" not in doc and signature
        ):
            found.append("no Returns")
    if list(parameters) != signature:
        found.append(f"Parameters are {list(parameters)}, the signature has {signature}")
    for parameter, kind in parameters.items():
        if "array" in kind and "(" not in kind:
            found.append(f"{parameter} : {kind!r} has no shape")
    if name not in TRIVIAL and "Raises" not in doc:
        found.append("no Raises")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_says_what_the_code_says(name):
    assert problems(name, public(name)) == []


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isclass(public(n))])
def test_methods_and_properties_have_docstrings_too(name):
    for member, function in public_members(public(name)):
        assert function.__doc__, f"{name}.{member} has no docstring"
        if "Parameters" in (doc := sections(function.__doc__)):
            signature = list(inspect.signature(function).parameters)[1:]
            assert list(entries(doc["Parameters"])) == signature, f"{name}.{member}"


@pytest.mark.parametrize("name", public_names())
def test_see_also_has_public_names_and_why(name):
    found = entries(sections(public(name).__doc__).get("See Also", []))
    assert found
    assert all(found.values()), "an entry is: name : half a sentence"
    assert set(found) <= set(public_names()) - {name}


@pytest.mark.parametrize("name", public_names())
def test_every_name_has_an_example(name):
    doc = sections(public(name).__doc__)
    assert (name in WITHOUT_EXAMPLES) == (">>> " not in "\n".join(doc.get("Examples", [])))
    order = [x for x in ("See Also", "Notes", "References", "Examples") if x in doc]
    assert [x for x in doc if x in order] == order, "the order of numpydoc"


def documented(name):
    """A public name, and if it is a class its public members: names to docstrings."""
    thing = public(name) if name else hc
    found = {name or "holoctl": inspect.getdoc(thing) or ""}
    for x in vars(thing) if inspect.isclass(thing) else ():
        member = getattr(thing, x)
        if not x.startswith("_") and (callable(member) or isinstance(member, property)):
            found[f"{name}.{x}"] = inspect.getdoc(member) or ""
    return found


@pytest.mark.parametrize("name", ["", *public_names()])
def test_examples_run_and_print_what_stands_below_them(name):
    runner, said = doctest.DocTestRunner(verbose=False), []
    for whose, doc in documented(name).items():
        runner.run(doctest.DocTestParser().get_doctest(doc, {}, whose, None, 0), out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("module", MODULES)
def test_what_a_public_module_holds_has_docstrings(module):
    module = public(module)
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, name


def test_the_checker_sees_what_is_wrong():
    def bad(q, v):
        """Short.

        Parameters
        ----------
        q : array_like
        """
        return q + v

    found = " ".join(problems("bad", bad))
    assert all(word in found for word in ("no Returns", "signature", "no shape", "no Raises"))
