"""The documentation as a site: nothing is left out, nothing points nowhere, nothing is fetched."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import cache

import pytest
import yaml
from browser import chromium
from markdown.extensions.toc import slugify
from pages import ALL_PAGES
from site_search import SearchIndex, asked
from support import ROOT, public_names

DOCS = ROOT / "docs"
LINKING = [*ALL_PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
TEXTS = [*LINKING, *sorted((ROOT / "benchmarks").glob("*.md"))]
LARGEST_PICTURE = 120_000
LONGEST_PAGE = 3000
"""Words, with tables and programs."""
LONGEST_README = 150


def prose(path):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(path):
    text = prose(path)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)


@cache
def headings(path):
    """Anchors of a page, as the site makes them."""
    found = re.findall(r"^#+ (.*)$", prose(path), flags=re.MULTILINE)
    own = re.findall(r'id="([^"]+)"', prose(path))
    return {*own, *(slugify(re.sub(r"[`*]|\]\(.*?\)", "", x), "-") for x in found)}


def in_navigation(entry):
    """Pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in in_navigation(part)]


@cache
def navigation():
    return in_navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])


@cache
def pictures():
    """Names of all pictures that are drawn, by the script that draws them."""
    path = DOCS / "pictures" / "__main__.py"
    spec = importlib.util.spec_from_file_location("docs_pictures", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return set(script.pictures())


# ------------------------------------------------------------------------- what there is


def test_every_public_name_is_in_the_reference_once():
    text = "\n".join(path.read_text("utf-8") for path in DOCS.glob("reference/*.md"))
    found = re.findall(r"^::: holoctl\.([\w.]+)$", text, flags=re.MULTILINE)
    assert sorted(found) == sorted(public_names())


def test_all_names_are_on_one_page():
    text = (DOCS / "reference/index.md").read_text("utf-8").partition("## All names at the top")[2]
    lists = "".join(line for line in text.splitlines() if line.startswith("- "))
    assert sorted(re.findall(r"`hc\.([\w.]+)`", lists)) == sorted(public_names())


def test_a_page_of_the_reference_says_how_its_parts_fit():
    for path in DOCS.glob("reference/*.md"):
        if path.stem != "index":
            intro = prose(path).partition(":::")[0]
            assert len(re.findall(r"[.)](?:\s|$)", intro)) >= 2, path.name
            assert re.search(r"\]\(\.\./[\w-]+\.md", intro), f"{path.name}: no way to a page"


def test_every_page_is_in_the_navigation_once():
    pages = [path.relative_to(DOCS).as_posix() for path in ALL_PAGES]
    found = navigation()
    assert len(set(found)) == len(found)
    assert set(pages) - set(found) == set()


def test_the_navigation_has_no_page_that_is_not_there():
    """A page of docs/, or a file of the project that comes along as one."""
    for page in navigation():
        there = [DOCS / page, ROOT / page, ROOT / page.removesuffix(".md")]
        assert any(path.is_file() for path in there), page


@pytest.mark.parametrize("path", LINKING, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_and_pictures_lead_somewhere(path):
    for link in links(path):
        if "://" in link or link.startswith("mailto:"):
            continue
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{path.name}: {link}"
        if anchor and file.suffix == ".md":
            assert anchor in headings(file), f"{path.name}: {link}: {sorted(headings(file))}"


def test_the_gallery_has_every_example_once():
    shown = [link for link in links(DOCS / "gallery.md") if link.endswith(".py")]
    assert sorted(shown) == sorted(f"../examples/{p.name}" for p in ROOT.glob("examples/*.py"))


def test_every_term_of_the_glossary_has_a_page_and_names():
    rows = re.findall(r"^\| (?!term|---)(.*) \|$", prose(DOCS / "glossary.md"), re.MULTILINE)
    assert len(rows) > 70
    for row in rows:
        term, synonyms, meaning, where = row.split(" | ")
        assert synonyms, term
        assert meaning.endswith("."), term
        assert re.match(r"\[[^]]+\]\([^)]+\)", where), term
        assert "`" in where or "](" in where.partition(")")[2], f"{term}: no function"


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_page_is_about_one_question(path):
    words = len(path.read_text("utf-8").split())
    assert words <= LONGEST_PAGE, f"{words} words: split it by question, or shorten it"


# ------------------------------------------------------------------------------ pictures


def test_every_picture_is_drawn_by_the_code_and_shown():
    folder = DOCS / "pictures"
    committed = {path.stem for path in folder.glob("*.png")}
    assert committed == pictures(), "draw them: python docs/pictures"
    shown = {os.path.basename(link) for path in LINKING for link in links(path)}
    assert {f"{name}.png" for name in committed} - shown == set()


def test_pictures_are_small():
    large = [p.name for p in DOCS.glob("pictures/*.png") if p.stat().st_size > LARGEST_PICTURE]
    assert large == []


# --------------------------------------------------------------------------- mathematics


@pytest.mark.parametrize(
    ("latex", "why"),
    {
        r"\frac{1}": "mfrac has 1 of 2 parts",
        r"\begin{foo} x \end{foo}": "no environment 'foo'",
        r"x_{a": "a brace without its other one",
        r"x}": "a brace without its other one",
        r"\label{x}": r"no way to set \label",
        r"\left\{ \frac{a}{b_i^2} \right. \\ \begin{bmatrix} 1 & 2 \end{bmatrix}": "",
    }.items(),
)
def test_half_a_formula_is_a_warning(latex, why):
    """What the converter sets without a word, and should not."""
    path = DOCS / "site" / "mathematics.py"
    spec = importlib.util.spec_from_file_location("docs_mathematics", path)
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    assert hook.wrong(latex, hook.mathml(latex, "inline")) == why


# -------------------------------------------------------------------------------- README


def test_the_readme_is_the_short_way_in():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) < LONGEST_README
    assert any(line.startswith("![") for line in lines[:5])
    assert {"    make demo", "    make test"} <= set(lines)


# ------------------------------------------------------------------------------ the site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built, strictly, with the pictures that are there: `make docs` draws them anew."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "HOLOCTL_DOCS_PICTURES": "committed", "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return out


@pytest.mark.slow
def test_the_site_is_whole(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(ALL_PAGES)
    texts = {path: path.read_text("utf-8") for path in pages}
    for path, text in texts.items():
        fetched = re.findall(r"<(?:script|img|link)[^>]+?(?:src|href)=\"?(https?:[^\" >]+)", text)
        assert fetched == [], path.name
        assert 'class="arithmatex"' not in text, f"{path.name}: mathematics that was not set"
    assert "<math" in texts[site / "index.html"]
    assert (site / "site" / "mathematics.woff").stat().st_size > 10_000


@pytest.mark.slow
def test_every_name_has_a_place_and_is_found(site):
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    places = {entry["location"].partition("#")[2] for entry in index}
    assert {f"holoctl.{name}" for name in public_names()} <= places
    text = "".join(path.read_text("utf-8") for path in site.glob("reference/*.html"))
    for name in public_names():
        assert text.count(f'id="holoctl.{name}"') == 1, name
    also = re.findall(r'<details class="see-also".*?</details>', text, re.DOTALL)
    assert len(also) == len(public_names())
    assert all(x.count("<li>") == x.count('<li><a class="autorefs') > 0 for x in also)


QUESTIONS = {
    "Delta robot": "tutorial-delta.html",
    "thousands of robots at once": "many-robots.html",
    "five-bar linkage": "tutorial-five-bar.html",
    "CAD export of my robot": "tutorial-own-robot.html",
    "my URDF has loops": "file-formats.html",
    "read MJCF": "file-formats-mjcf.html",
    "Gazebo SDF": "file-formats-sdf.html",
    "export to MuJoCo": "interoperability.html",
    "nonlinear MPC with CasADi": "interoperability.html",
    "run as a pandas data frame": "interoperability.html",
    "axes of the joint that closes a loop": "closing-axes.html",
    "ankle": "transmissions.html",
    "humanoid ankle": "transmissions.html",
    "transmission": "transmissions.html",
    "add a payload": "faq.html",
    "does it need ROS": "faq.html",
    "install": "index.html",
    "why does my mechanism not move": "doctor.html",
    "degrees of freedom Gruebler": "doctor.html",
    "redundant constraints": "doctor.html",
    "assembly modes": "assembly-modes.html",
    "SingularityError": "troubleshooting.html",
    "the robot shakes": "troubleshooting.html",
    "torque wrong by a factor, millimetres": "troubleshooting.html",
    "manipulability": "workspace-maps.html",
    "type 2 singularity": "singularities.html",
    "my path goes through a singularity": "singularities.html",
    "working mode": "inverse-kinematics.html",
    "path from one sheet to another": "singularities.html",
    "reflected inertia": "transmissions.html",
    "gravity compensation": "equilibria.html",
    "gamma letters": "notation.html",
    "operational space control": "task-space.html",
    "impedance control": "task-space.html",
    "inverse kinematics": "inverse-kinematics.html",
    "design an LQR": "design.html",
    "fastest trajectory along a path": "trajectories.html",
    "limits of motors": "limits.html",
    "1 kHz control loop": "realtime.html",
    "passive joints from encoders": "encoders.html",
    "controller on a microcontroller": "embedded.html",
    "export C code": "embedded.html",
    "joint friction": "forces.html",
    "how do I simulate": "simulation.html",
    "estimate external forces": "external-forces.html",
    "show it in the browser": "view.html",
    "compare with Drake and MuJoCo": "scope.html",
    "unilateral contact": "contacts.html",
    "check my FDgq code": "from-spatial-v2.html",
    "coming from RBDL": "from-rbdl.html",
    "my four-bar knee: torque for the motor": "transmissions.html",
    "limit joint velocity at 1 kHz": "limits.html",
    "which of my loop constraints is redundant": "doctor.html",
    "the robot is in the wrong elbow configuration": "assembly-modes.html",
    "add a gripper payload": "faq.html",
    "run without encoders on passive joints": "encoders.html",
    "export for STM32": "embedded.html",
    "ForwardDynamicsConstraintsDirect": "from-rbdl.html",
    "what is a certificate": "faq.html",
    "contact of two feet": "faq.html",
    "bearing reaction forces": "faq.html",
    "identify friction": "identification.html",
    "identify masses from measurements": "identification.html",
    "identify the payload mass": "identification.html",
    "my CAD masses are wrong": "tutorial-identification.html",
    "collision checking": "scope.html",
    "elastic joints": "scope.html",
    "MPC": "scope.html",
    "Jacobian of the ankle's motors": "transmissions.html",
    "LQR about an unstable pose": "design.html",
    "animate a run for a talk": "simulation.html",
    "figure for an IEEE paper": "simulation.html",
    "use it from C++": "embedded.html",
    "compute on many cores": "sweeps.html",
    "singularities of my workspace": "workspace-maps.html",
    "install on Windows": "index.html",
    "install with conda": "index.html",
    "ROS 2 ros2_control": "faq.html",
    "PD control with feedforward": "realtime.html",
    "cable-driven robot": "limits.html",
    "counterweight": "forces.html",
    "hexapod": "doctor.html",
    "single precision": "embedded.html",
    "watchdog": "realtime.html",
}
"""Questions in users' words, and the page that the search of the site must have first."""


def found_first(site):
    """Of each question, by the index of the site: the pages that are found, with their scores."""
    index = SearchIndex(site)
    return {question: index.pages(question) for question in QUESTIONS}


@pytest.mark.slow
def test_a_question_finds_its_page_first(site):
    found = {question: pages[:1] for question, pages in found_first(site).items()}
    missed = {q: found[q] for q, page in QUESTIONS.items() if [p for p, _ in found[q]] != [page]}
    assert len(QUESTIONS) == 84
    assert missed == {}


@pytest.mark.slow
def test_questions_are_ranked_as_the_theme_ranks_them(site):
    """tests/site_search.py against the theme's own search and docs/site/search.js."""
    (worker,) = site.glob("assets/javascripts/workers/search*.js")
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    with chromium() as (page, _):
        page.goto((site / "index.html").as_uri())
        theirs = page.evaluate(
            """async ([source, index, questions]) => {
                let ask, answer
                new Function("self", "addEventListener", "postMessage", source)
                    (window, (_, f) => { ask = f }, (m) => answer(m))
                const reply = (data) => new Promise((f) => { answer = f; ask({ data }) })
                await reply({ type: 0, data: { ...index, options: {} } })
                const found = {}
                for (const question of questions) {
                    const words = asked(question)
                    const { items } = (await reply({ type: 2, data: words })).data
                    found[question] = [words, items.map((sections) =>
                        [sections[0].location.split("#")[0],
                         Math.max(...sections.map((section) => section.score))])]
                }
                return found
            }""",
            [worker.read_text("utf-8"), index, list(QUESTIONS)],
        )
    for question, mine in found_first(site).items():
        words, pages = theirs[question]
        assert words == asked(question)
        theirs_first = sorted((p for p in pages if p[1]), key=lambda p: -p[1])[:5]
        assert [p for p, _ in mine[:5]] == [p for p, _ in theirs_first], question
        assert [s for _, s in mine[:5]] == pytest.approx([s for _, s in theirs_first]), question


@pytest.mark.slow
def test_the_search_works_from_a_file(site):
    """Without a server and without a network."""
    with chromium() as (page, seen):
        page.goto((site / "index.html").as_uri())
        page.wait_for_timeout(500)
        page.click(".md-search__input")
        page.locator(".md-search__input").press_sequentially("ComputedTorque", delay=20)
        page.wait_for_selector(".md-search-result__item")
        page.wait_for_timeout(500)
        page.locator(".md-search-result__item a").first.click()
        page.wait_for_url("**/reference/control.html*")
        assert seen.elsewhere("file:") == []
        assert seen.errors == []
