"""What users see first: the names, the cost of the import, the documents."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.pictures.__main__ import pictures
from docs.reference.python_page import page as python_page
from docs.reference.python_page import undescribed
from docs.reference.tpch_page import page as tpch_page
from tests.readme import code_blocks, printed, steps

import lakebed
from lakebed.definition.statement_rules import page as statements_page
from lakebed.metrics.__main__ import page as metrics_page
from lakebed.options import options_page

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

PUBLIC_NAMES = [
    "AddColumn",
    "After",
    "DropColumn",
    "First",
    "Lake",
    "Pipeline",
    "RemoveOption",
    "RenameColumn",
    "SetOption",
    "Snapshot",
    "Table",
    "TableSchema",
    "TableWriter",
    "UpdateColumnComment",
    "UpdateColumnDefault",
    "UpdateColumnNullability",
    "UpdateColumnPosition",
    "UpdateColumnType",
    "UpdateComment",
    "__version__",
    "connect",
    "errors",
    "metrics",
    "pipeline",
]

TABLE_MEMBERS = """
    name schema arrow_schema hidden_schema options primary_key partition_by comment location
    columns to_arrow to_pandas to_polars to_batches to_reader scan_polars to_duckdb head count sample where plan
    to_spark lookup key_lookup why explain health advise scan changes diff changes_to_spark diff_to_spark follow
    read_stream
    at fixed_to pinned with_options on_branch snapshots latest_snapshot told_snapshot lsm timeline
    write writer write_spark write_stream
    delete_where truncate alter
    compact explain_work compact_follow create_tag replace_tag rename_tag delete_tag expire_tags create_due_tags tags
    rollback_to rollback_to_as_latest expire_snapshots check remove_orphan_files remove_missing_files
    repair_metadata purge_files rewrite_file_index reassign_row_ids expire_changelogs partitions drop_partitions
    expire_partitions mark_partition_done consumers reset_consumer clear_consumers compact_manifest analyze
    statistics rescale branches create_branch delete_branch rename_branch fast_forward merge_branch
"""
"""In the order of the file: what it is, reading, reading it otherwise, writing, changing, upkeep."""
WRITER_MEMBERS = "write commit abort"
LAKE_MEMBERS = """
    settings other_tables started_jobs jobs go_on location spark is_spark_started storage_options attach sql query
    current_database use databases create_database drop_database tables table has_table create_table replace_table
    drop_table rename_table
    materialize refresh refresh_all consistent at explain materialized materialized_tables alter_materialized
"""

IMPORT_BUDGET_S = 0.3
MEASURE = """
import time, pyarrow
began = time.process_time()
import lakebed
print(time.process_time() - began)
import sys
print([name for name in ("pandas", "polars", "duckdb", "obstore", "pyspark", "jpype", "py4j") if name in sys.modules])
"""


def test_public_names_are_pinned() -> None:
    """A public name comes or goes on purpose only; all exist."""
    assert lakebed.__all__ == PUBLIC_NAMES
    assert all(hasattr(lakebed, name) for name in PUBLIC_NAMES)


@pytest.mark.parametrize(
    ("holder", "members"),
    [
        (lakebed.Table, TABLE_MEMBERS),
        (lakebed.TableWriter, WRITER_MEMBERS),
        (lakebed.connect("memory://public-face"), LAKE_MEMBERS),
    ],
    ids=["Table", "TableWriter", "Lake"],
)
def test_members_that_users_call_are_pinned(holder: object, members: str) -> None:
    """A member comes or goes on purpose only: what other parts ask of a table is a function beside it."""
    assert sorted(name for name in dir(holder) if not name.startswith("_")) == sorted(members.split())


def test_import_is_cheap() -> None:
    """Importing lakebed costs little beyond pyarrow's own import and loads nothing heavy: no JVM, no data frames."""
    runs = [
        subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(3)
    ]
    assert [run[1] for run in runs] == ["[]"] * 3
    # The fastest of three: a busy machine slows single runs down.
    assert min(float(run[0]) for run in runs) < IMPORT_BUDGET_S


def test_option_page_is_fresh() -> None:
    """docs/reference/options.md is what the option table gives; `make docs` writes it."""
    assert (ROOT / "docs" / "reference" / "options.md").read_text() == options_page()


def test_the_page_of_statements_is_current() -> None:
    """docs/reference/statements.md is what the table of statements gives; `make docs` writes it."""
    assert (ROOT / "docs" / "reference" / "statements.md").read_text() == statements_page()


def test_the_page_of_metrics_is_current() -> None:
    """docs/reference/metrics.md is what the list of families gives; `make docs` writes it."""
    assert (ROOT / "docs" / "reference" / "metrics.md").read_text() == metrics_page()


def test_option_keys_are_spelled_once() -> None:
    """Dotted option keys appear in the option table only, so that a rename happens in one place."""
    from lakebed.options import OPTIONS

    keys = {option.key for option in OPTIONS if "." in option.key and "<" not in option.key}
    for path in (ROOT / "src" / "lakebed").rglob("*.py"):
        if "options" in path.parts or "testing" in path.parts:
            continue  # tests write options as users do
        for text in re.findall(r'"([a-z][a-z0-9.-]+)"', path.read_text()):
            assert text not in keys, f"{path} spells out {text}"


def test_the_python_page_is_current() -> None:
    """docs/reference/python.md is what signatures and docstrings give, of every public name; `make docs` writes it."""
    text = (ROOT / "docs" / "reference" / "python.md").read_text()
    assert text == python_page()
    assert undescribed(text) == []


def test_the_page_of_tpch_is_current() -> None:
    """docs/reference/tpch.md is how the queries of TPC-H follow changes today; `make docs` writes it."""
    assert (ROOT / "docs" / "reference" / "tpch.md").read_text() == tpch_page()


@pytest.mark.parametrize(("holder", "members"), [("Table", TABLE_MEMBERS), ("TableWriter", WRITER_MEMBERS)])
def test_the_python_page_has_every_member(holder: str, members: str) -> None:
    """What users may call of a handle is described there."""
    headings = set((ROOT / "docs" / "reference" / "python.md").read_text().splitlines())
    missing = [name for name in members.split() if not {f"### {holder}.{name}", f"#### {holder}.{name}"} & headings]
    assert missing == []


def test_pictures_are_current() -> None:
    """Pictures in the documents show what tables do today; `make docs` draws them."""
    drawn = pictures()
    folder = ROOT / "docs" / "pictures"
    assert {path.name for path in folder.glob("*.svg")} == set(drawn)
    for name, svg in drawn.items():
        assert (folder / name).read_text(encoding="utf-8") == svg, name


def test_pictures_are_whole_and_shown() -> None:
    """Every picture is XML with a title and a meaning for those who can not see it, and stands in some document."""
    documents = "".join(path.read_text() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
    for path in (ROOT / "docs" / "pictures").glob("*.svg"):
        texts = {element.tag.rpartition("}")[2]: element.text for element in ElementTree.parse(path).getroot()}
        assert texts["title"], path.name
        assert texts["desc"], path.name
        assert f"pictures/{path.name})" in documents, path.name


def test_readme_without_spark(tmp_path: Path) -> None:
    """What the README shows before it asks for Spark prints what it says, to the letter."""
    wanted = [step for step in steps(README) if step.extra != "spark"]
    assert len(wanted) >= 2
    assert printed(sys.executable, wanted, tmp_path / "empty") == [step.output for step in wanted]


@pytest.mark.spark
def test_readme_with_spark(tmp_path: Path) -> None:
    """All of the README's Python, typed into one process, prints what it says."""
    wanted = steps(README)
    assert {step.extra for step in wanted} == {"duckdb", "spark"}
    assert printed(sys.executable, wanted, tmp_path / "empty") == [step.output for step in wanted]


def test_the_first_result_takes_five_lines() -> None:
    """Between the imports and the first result there are no more."""
    first = [line for line in steps(README)[0].code.splitlines() if line and not line.startswith("import ")]
    assert len(first) == 5


def test_the_chinese_readme_says_the_same() -> None:
    """It has the same code, the same links and as many headings, and both lead to each other."""
    chinese = (ROOT / "README.zh-CN.md").read_text()

    def links(text: str) -> list[str]:
        return sorted(target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith("README"))

    assert code_blocks(chinese) == code_blocks(README)
    assert links(chinese) == links(README)
    assert len(re.findall("^## ", chinese, re.MULTILINE)) == len(re.findall("^## ", README, re.MULTILINE))
    assert "(README.md)" in chinese
    assert "(README.zh-CN.md)" in README


def test_commands_of_the_readme_exist() -> None:
    """`lakebed` commands and options in it are taken by the command, extras and make targets are there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {step.extra for step in steps(README)} <= {"", *project["optional-dependencies"]}
    named = re.search(r"^Extras: (.*?)\.", README, re.MULTILINE)
    assert named is not None
    assert set(re.findall(r"`([\w-]+)`", named.group(1))) == set(project["optional-dependencies"])
    command = re.search(r"^lakebed (cdc postgres) \S+ (.*)$", README, re.MULTILINE)
    assert command is not None
    run = [sys.executable, "-m", "lakebed", *command.group(1).split(), "--help"]
    usage = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert all(option in usage for option in re.findall(r"--[\w-]+", command.group(2)))


def test_links_in_documents_lead_somewhere() -> None:
    """Relative links of the documents point at files that exist."""
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


# What the second one shows is run statement by statement in tests/spark/test_examples.
@pytest.mark.parametrize("example", ["tour", pytest.param("paimon_sql", marks=pytest.mark.nightly)])
def test_example_runs(tmp_path: Path, example: str) -> None:
    """The example ends with its own assertions passed."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{example}.py"), str(tmp_path / example)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_example_is_run() -> None:
    """No example is forgotten: the shop needs servers and has a test of its own in tests/cdc/test_demo."""
    assert {example.stem for example in (ROOT / "examples").glob("*.py")} == {
        "paimon_sql",
        "shop",
        "shop_database",
        "tour",
    }
