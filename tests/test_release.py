"""What goes out beside the wheel: the sdist, how to cite, the conda recipe."""

from __future__ import annotations

import re
import tomllib

import yaml
from hatchling.builders.sdist import SdistBuilder
from support import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]

DOCS = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
PAGES = ["README.md", "CONTRIBUTING.md", *DOCS]

CITATION_REQUIRED = {"authors", "cff-version", "message", "title"}
CITATION_ALLOWED = CITATION_REQUIRED | {
    "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license",
    "license-url", "preferred-citation", "references", "repository", "repository-artifact",
    "repository-code", "type", "url", "version",
}  # fmt: skip
"""The keys of the Citation File Format 1.2.0."""

ADDED_BY_HATCHLING = {"LICENSE", "README.md", "pyproject.toml"}

ON_CONDA_FORGE = {"pin": "pinocchio"}
"""Where its name there is another than on PyPI, in small letters."""


def read_yaml(path):
    """Versions and dates stay text."""
    return yaml.load((ROOT / path).read_text("utf-8"), Loader=yaml.BaseLoader)


def recipe():
    """The recipe, ``${{ name }}`` replaced where its context knows the name."""
    text = (ROOT / "recipe" / "recipe.yaml").read_text("utf-8")
    for name, value in read_yaml("recipe/recipe.yaml")["context"].items():
        text = text.replace(f"${{{{ {name} }}}}", value)
    return yaml.load(text, Loader=yaml.BaseLoader)


def conda(requirement):
    """A requirement of the wheel as conda-forge would write it."""
    name, bounds = re.fullmatch(r"([A-Za-z0-9._-]+)([<>=!~0-9.,]*)", requirement).groups()
    name = name.casefold()
    return f"{ON_CONDA_FORGE.get(name, name)} {bounds}".strip()


def links(page):
    """Files that a page points to, as paths from the root."""
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text("utf-8")):
        path = target.partition("#")[0]
        if path and "://" not in path:
            yield ((ROOT / page).parent / path).resolve().relative_to(ROOT).as_posix()


def test_the_sdist_holds_what_its_pages_and_its_makefile_point_to():
    """By hatchling's list of files: to pack them takes longer, and `make wheel` does it."""
    files = SdistBuilder(str(ROOT)).recurse_included_files()
    shipped = {file.distribution_path for file in files} | ADDED_BY_HATCHLING
    makefile = re.findall(r"[\w/.]+\.(?:py|txt|lock)\b", (ROOT / "Makefile").read_text("utf-8"))
    needed = {".ci/run", "CITATION.cff", "Makefile", "mkdocs.yml", "recipe/recipe.yaml"}
    needed |= {*PAGES, *makefile}
    needed |= {link for page in PAGES for link in links(page)}
    assert len(needed) > 40
    assert needed - shipped == set()


def test_one_version_everywhere():
    """Its place is pyproject.toml; the package reads it from there, by its metadata."""
    version = PROJECT["version"]
    assert read_yaml("CITATION.cff")["version"] == version
    assert read_yaml("recipe/recipe.yaml")["context"]["version"] == version
    assert version in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_citation_is_of_the_format_and_of_this_project():
    citation = read_yaml("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert CITATION_REQUIRED <= set(citation) <= CITATION_ALLOWED
    assert citation["type"] in {"software", "dataset"}
    assert citation["title"].partition(":")[0] == PROJECT["name"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["license"] == PROJECT["license"]
    assert sorted(citation["keywords"]) == sorted(PROJECT["keywords"])


def test_the_conda_recipe_needs_what_the_wheel_needs():
    needs = recipe()["requirements"]
    python = f"python {PROJECT['requires-python']}"
    assert sorted(needs["run"]) == sorted([python, *map(conda, PROJECT["dependencies"])])
    assert set(map(conda, PYPROJECT["build-system"]["requires"])) <= set(needs["host"])
    assert f"{python.replace('>=', '')}.*" in needs["host"]


def test_the_conda_recipe_is_of_this_project():
    conda_recipe = recipe()
    assert conda_recipe["package"]["name"] == PROJECT["name"]
    assert conda_recipe["about"]["summary"] == PROJECT["description"]
    assert conda_recipe["about"]["license"] == PROJECT["license"]
    assert [conda_recipe["about"]["license_file"]] == PROJECT["license-files"]
    commands = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert conda_recipe["build"]["python"]["entry_points"] == commands
    assert conda_recipe["build"]["noarch"] == "python"
    source = (ROOT / "recipe" / conda_recipe["source"]["path"]).resolve()
    assert source == ROOT.resolve()
    of_imports, of_commands = conda_recipe["tests"]
    assert of_imports["python"]["imports"] == [PROJECT["name"]]
    assert {line.split()[0] for line in of_commands["script"]} == set(PROJECT["scripts"])
    assert "${{" not in str({**conda_recipe, "build": None})
