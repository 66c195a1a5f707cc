"""A folder of real files becomes a corpus that can be validated, searched and traced back."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from pypdf import PdfReader, PdfWriter

from rag_reliability.cli import main
from rag_reliability.datasets.ingest import ingest
from rag_reliability.datasets.ingest_files import read_file
from rag_reliability.datasets.read import read_corpus
from rag_reliability.datasets.write import write_beir, write_corpus
from rag_reliability.records import Corpus, InputError

HEADER = "file,source_type,source,url,date,verified,title\n"
PAGES = (
    ["Kettles boil water in three minutes.", "The base must stay dry."],
    ["Descale the kettle every month with vinegar."],
)


def pdf(path: Path, pages) -> Path:
    with mpl.rc_context({"pdf.fonttype": 42}), PdfPages(path) as file:
        for lines in pages:
            figure = Figure(figsize=(6, 4))
            for row, line in enumerate(lines):
                figure.text(0.05, 0.9 - 0.1 * row, line)
            if not lines:  # a page that is a picture of ink, as from a scanner
                figure.subplots().imshow([[0, 1], [1, 0]])
                figure.axes[0].set_axis_off()
            file.savefig(figure)
    return path


@pytest.fixture
def files(tmp_path) -> Path:
    folder = tmp_path / "files"
    (folder / "forum").mkdir(parents=True)
    (folder / "forum" / "my kettle.txt").write_bytes("Café für alle.\r\nIt leaks.\r\n".encode())
    (folder / "guide.md").write_text(
        "# Safe kettles\n\nFill it to the mark.\nNever above it.\n\nUnplug it before cleaning.\n",
        encoding="utf-8",
    )
    pdf(folder / "manual.pdf", PAGES)
    return folder


@pytest.fixture
def table(tmp_path):
    def write(rows: str, header: str = HEADER) -> Path:
        path = tmp_path / "sources.csv"
        path.write_text(header + rows, encoding="utf-8")
        return path

    return write


ROWS = (
    "forum/*,user_generated,Kettle Forum,https://kettles.example/forum,2024-02-03,no,\n"
    "guide.md,government,Office,https://office.example/g,2023,yes,\n"
    "manual.pdf,established_news,Maker,,,1,The manual\n"
)


def refused(*args, **options) -> str:
    with pytest.raises(InputError) as error:
        ingest(*args, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_every_chunk_knows_its_file_and_place(files, table):
    made = ingest(files, table(ROWS), words=8)
    assert {d.docno: (d.place, d.title) for d in made.documents} == {
        "forum/my_kettle.txt#001": ("lines 1-2", "my kettle"),
        "guide.md#001": ("line 1", "Safe kettles"),
        "guide.md#002": ("lines 3-4", "Safe kettles"),
        "guide.md#003": ("line 6", "Safe kettles"),
        "manual.pdf#001": ("page 1", "The manual"),
        "manual.pdf#002": ("page 1", "The manual"),
        "manual.pdf#003": ("page 2", "The manual"),
    }
    texts = {d.docno: d.text for d in made.documents}
    assert texts["forum/my_kettle.txt#001"] == "Café für alle.\nIt leaks."
    assert texts["guide.md#002"] == "Fill it to the mark.\nNever above it."
    assert texts["manual.pdf#003"] == PAGES[1][0]
    forum = made.documents[0]
    assert (forum.source_type, forum.source, forum.date, forum.verified) == (
        *("user_generated", "Kettle Forum", "2024-02-03"),
        False,
    )
    assert [d.verified for d in made.documents[1:]] == [True] * 6
    assert {name: facts.encoding for name, facts in made.files.items()} == {
        "forum/my kettle.txt": "utf-8",
        "guide.md": "utf-8",
        "manual.pdf": "",
    }


def test_no_word_is_lost_and_no_chunk_is_too_long(tmp_path, table):
    folder = tmp_path / "long"
    folder.mkdir()
    text = "\n\n".join(
        " ".join(f"w{p}.{s}.{w}" for w in range(7)) + "." for p in range(9) for s in range(3)
    )
    (folder / "a.txt").write_text(text, encoding="utf-8")
    made = ingest(folder, table("*.txt,blog,,,,,\n"), words=20)
    assert max(len(d.text.split()) for d in made.documents) <= 20
    assert " ".join(d.text for d in made.documents).split() == text.split()
    assert ingest(folder, table("*.txt,blog,,,,,\n"), words=20) == made


def test_from_files_to_validate(files, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sources = str(table(ROWS))
    assert main(["ingest", str(files), "--sources", sources, "--out", "corpus/mine"]) == 0
    assert "3 documents from 3 files" in capsys.readouterr().out
    record = json.loads(Path("corpus/mine/ingest.json").read_text(encoding="utf-8"))
    assert record["words"] == 150 and set(record["files"]) == {
        *("forum/my kettle.txt", "guide.md", "manual.pdf")
    }
    assert main(["validate", "corpus/mine"]) == 0
    assert "3 documents, 0 topics" in capsys.readouterr().out
    assert read_corpus("corpus/mine").documents[2].place == "pages 1-2"
    assert main(["ingest", str(files), "--sources", sources, "--out", "corpus/mine"]) == 2
    assert "already holds a corpus" in capsys.readouterr().err


def test_a_type_without_a_prior_is_refused(files, table, tmp_path, capsys):
    rows = table("guide.md,blog,,,,,\n*,rumour,,,,,\n")
    assert main(["ingest", str(files), "--sources", str(rows), "--out", str(tmp_path / "c")]) == 2
    told = capsys.readouterr().err
    assert f"{rows}:3: field 'source_type': 'rumour' has no prior in" in told
    assert "configs/priors.yaml; known: peer_reviewed, " in told
    assert not (tmp_path / "c").exists()


def test_files_without_a_row_and_rows_without_a_file(files, table):
    message = refused(files, table("guide.md,government,,,,,\n"))
    assert message.endswith("come from: forum/my kettle.txt, manual.pdf")
    message = refused(files, table("*,blog,,,,,\nguide.rst,blog,,,,,\n"))
    assert message.startswith("rows without a file: guide.rst (") and "sources.csv:3" in message


def test_a_name_counts_before_a_glob_and_two_globs_are_refused(files, table):
    made = ingest(files, table("*,blog,,,,,\nguide.md,government,,,,,\n"))
    assert [d.source_type for d in made.documents] == ["blog", "government", "blog"]
    assert "two rows match it" in refused(files, table("*,blog,,,,,\n*.md,government,,,,,\n"))


@pytest.mark.parametrize(
    ("rows", "header", "part"),
    [
        ("a,b\n", "file,sourcetype\n", "unknown column 'sourcetype'"),
        ("a\n", "file\n", "no column 'source_type'"),
        ("a,b,c\n", "file,source_type\n", "sources.csv:2: 3 columns, expected 2"),
        ("*,\n", "file,source_type\n", "sources.csv:2: source_type is empty"),
        ("*,blog,,,,perhaps,\n", HEADER, "verified = 'perhaps'"),
        ("*,blog\n*,blog\n", "file,source_type\n", "stands twice"),
        ("", HEADER, "no rows"),
        ("*,two words\n", "file,source_type\n", "source_type"),
        *(
            (f"g.md,blog,,,,,\n*,blog,,,{date},,\n", HEADER, part)
            for date, part in (
                ("2024-02-30", "sources.csv:3: date = '2024-02-30'; expected YYYY, YYYY-MM or"),
                ("03.02.2024", "sources.csv:3: date = '03.02.2024'"),
                ("20240203", "sources.csv:3: date = '20240203'"),
                ("soon", "sources.csv:3: date = 'soon'"),
            )
        ),
        *(
            (
                f"*,blog,,{url},,,\n",
                HEADER,
                f"sources.csv:2: url = '{url}'; expected http(s)://host",
            )
            for url in (
                *("www.kettles.example", "ftp://kettles.example", "javascript:alert(1)"),
                *("https:///guide", "http://", "https://a b.example", "http://k.example:99999"),
                "http://[k.example",
            )
        ),
    ],
)
def test_a_faulty_table_is_refused(files, table, rows, header, part):
    assert part in refused(files, table(rows, header))


def test_semicolons_part_columns_too(files, table):
    made = ingest(files, table("*;blog;Yes, that one\n", "file;source_type;source\n"))
    assert {d.source for d in made.documents} == {"Yes, that one"}


# ---- what a file may hold ----------------------------------------------------------------------


def test_encodings_are_told_and_never_guessed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("año".encode("cp1252"))
    with pytest.raises(InputError, match=r"not utf-8 \(0xf1 at byte 2\); say --encoding"):
        read_file(path)
    found = read_file(path, "cp1252")
    assert (found.text, found.encoding) == ("año", "cp1252")
    with pytest.raises(InputError, match="unknown encoding 'cp12'"):
        read_file(path, "cp12")
    path.write_bytes("año".encode("utf-16"))
    assert read_file(path).text == "año"
    path.write_bytes("\ufeffaño\x1b[2J".encode())
    assert read_file(path, "cp1252").text == "año[2J"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"MZ\0\1"])
def test_a_binary_file_is_refused(tmp_path, data):
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    with pytest.raises(InputError, match="is a binary file"):
        read_file(path)


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_an_empty_file_is_refused(tmp_path, name):
    (tmp_path / name).write_text(" \n--\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds no text$"):
        read_file(tmp_path / name)


def test_a_scanned_pdf_is_refused_and_a_blank_page_is_told(tmp_path):
    with pytest.raises(InputError, match="holds no text; it may be scanned"):
        read_file(pdf(tmp_path / "scan.pdf", [[]]))
    with pytest.warns(UserWarning, match="no text on page 2"):
        found = read_file(pdf(tmp_path / "half.pdf", [PAGES[1], [], PAGES[0]]))
    assert found.place(found.text.index("base"), len(found.text)) == "page 3"


def test_an_encrypted_pdf_is_refused_unless_anybody_may_open_it(tmp_path):
    for password, name in (("secret", "locked.pdf"), ("", "open.pdf")):
        writer = PdfWriter(clone_from=PdfReader(pdf(tmp_path / "plain.pdf", PAGES)))
        writer.encrypt(password, owner_password="owner", algorithm="AES-256")
        writer.write(tmp_path / name)
    with pytest.raises(InputError, match="is encrypted; save a copy without its password"):
        read_file(tmp_path / "locked.pdf")
    assert PAGES[0][0] in read_file(tmp_path / "open.pdf").text


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\nnothing more", b"no PDF at all, but words"])
def test_a_damaged_pdf_is_refused(tmp_path, data):
    (tmp_path / "a.pdf").write_bytes(data)
    with pytest.raises(InputError, match="is no PDF that can be read") as error:
        read_file(tmp_path / "a.pdf")
    assert "\n" not in str(error.value)


def test_other_kinds_of_files_are_passed_over_aloud(files, table):
    (files / "photo.png").write_bytes(b"\x89PNG\0")
    (files / ".hidden.txt").write_text("x", encoding="utf-8")
    with pytest.warns(UserWarning, match="1 files of other kinds were passed over: photo.png"):
        assert len(ingest(files, table(ROWS)).files) == 3


def test_place_survives_both_layouts_and_is_absent_where_unknown(files, table, tmp_path, health120):
    documents = ingest(files, table(ROWS)).documents
    for write, name in ((write_corpus, "own"), (write_beir, "beir")):
        write(Corpus("c", documents), tmp_path / name)
        assert read_corpus(tmp_path / name).documents == documents
    write_corpus(health120, tmp_path / "again")
    again = (tmp_path / "again" / "documents.jsonl").read_text(encoding="utf-8")
    assert '"place"' not in again and '"claims"' in again


def test_a_title_from_a_file_name_is_one_line(tmp_path, table):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "new\nline_here.txt").write_text("Words.")
    rows = table("*,blog\n", "file,source_type\n")
    assert ingest(tmp_path / "own", rows).documents[0].title == "new line here"
