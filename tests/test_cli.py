"""The command line: what it prints, its exit status, and Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from damaged_packs import tiles
from iac_query.adapters import validate
from packs import DATA, flip_payload, payloads_of, write_encoded, write_pack
from tile_data import files_in

import iac_query as iac
from iac_query.cli import main


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "iac_query", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def damaged(tmp_path) -> Path:
    path = tiles(tmp_path / "damaged.iac")
    flip_payload(path, 3)
    return path


def test_a_sound_pack(pack):
    done = run("validate", pack)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{pack}: ok (raw_bytes, codec none, 10 records, ")


def test_findings_are_printed_and_the_exit_status(damaged, pack, capsys):
    assert main(["validate", str(damaged.parent), "--max-decode", "0", "--workers", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{damaged}: 1 error (image_tiles, codec jxl, 6 records, ")
    assert lines[1].startswith("  row 3: ")
    assert lines[2].startswith(f"{pack}: ok")
    assert lines[-1] == "2 packs, 1 with errors, 16 records, 1 error, 1 note"


def test_fail_fast_stops_behind_the_first(damaged, pack, capsys):
    assert main(["validate", "--fail-fast", str(damaged), str(pack)]) == 1
    assert str(pack) not in capsys.readouterr().out
    assert main(["validate", "--fail-fast", str(pack), str(damaged)]) == 1
    assert str(pack) in capsys.readouterr().out


def test_limits(damaged, capsys):
    arguments = ["validate", str(damaged), "--max-crc", "1", "--max-decode", "1"]
    assert main(arguments) == 0  # the first row alone
    assert "1 decoded, 1 compared" in capsys.readouterr().out


def test_the_command_of_the_adapters(damaged, pack, capsys):
    for path, options in ((pack, []), (damaged, []), (damaged.parent, ["--max-decode", "1"])):
        status = main(["validate", str(path), *options])
        expected = capsys.readouterr()
        try:
            validate.main([*options, "--input", str(path), "--max-crc", "0"])
            assert status == 0
        except SystemExit as end:
            assert end.code == status != 0
        assert capsys.readouterr().out == expected.out
    for arguments in ([], ["--input"], ["--input", str(pack), "--max-decode", "x"]):
        with pytest.raises(SystemExit) as caught:
            validate.main(arguments)
        assert caught.value.code == 2


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "the following arguments are required: COMMAND"),
        (["validate"], "PATH"),
        (["validate", "x", "--max-crc", "-1"], "'-1' is no number from 0 on"),
        (["validate", "x", "--workers", "0"], "'0' is no number from 1 on"),
        (["repair", "x"], "OUT"),
    ],
)
def test_usage(arguments, said, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_what_is_not_there(tmp_path, pack, capsys):
    missing = tmp_path / "no.iac"
    assert main(["validate", str(pack), str(missing)]) == 2
    assert capsys.readouterr() == ("", f"validate: {missing}: no such file\n")
    assert main(["repair", str(missing), str(tmp_path / "out.iac")]) == 2
    assert str(missing) in capsys.readouterr().err


def test_repair(tmp_path, damaged, capsys):
    out = tmp_path / "new" / "out.iac"
    assert main(["repair", str(damaged), str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{out}: 5 records, 1 dropped" and lines[1].startswith("  row 3: ")
    assert iac.validate(out, max_decode=0).ok
    assert main(["repair", str(damaged), str(out)]) == 2
    assert capsys.readouterr().err == f"repair: {out}: there is a file, pass --overwrite\n"
    assert main(["repair", str(damaged), str(out), "--overwrite"]) == 0
    assert main(["repair", str(damaged), str(damaged), "--overwrite"]) == 2


def test_what_cannot_be_repaired(tmp_path, capsys):
    path = write_pack(tmp_path / "x.iac", payloads_of(1))
    flip_payload(path, 0)
    assert main(["repair", str(path), str(tmp_path / "out.iac")]) == 1
    assert capsys.readouterr().err == f"repair: {path}: cannot be repaired: no record is whole\n"
    (tmp_path / "y.iac").write_bytes(b"none")
    assert main(["repair", str(tmp_path / "y.iac"), str(tmp_path / "out.iac")]) == 1
    assert files_in(tmp_path) == {"x.iac", "y.iac"}


def test_names_that_are_not_unicode(tmp_path, pack):
    path = os.fsencode(tmp_path) + b"/\xff.iac"
    os.rename(pack, path)
    done = run("validate", os.fsdecode(path))
    assert done.returncode == 0 and "\\udcff.iac: ok" in done.stdout
    assert iac.validate(os.fsdecode(path)).to_table()["pack"][0].as_py().endswith("\ufffd.iac")


def test_a_reader_that_has_enough(tmp_path):
    command = f"{sys.executable} -m iac_query validate {DATA}/*.iac | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1


SLOW = """
import sys, time
import iac_query
from iac_query.adapters import validate
from iac_query.cli import main

class Slow(iac_query.Codec):
    name = "slow"
    def decode(self, payload):
        print("decoding", flush=True)
        time.sleep(0.01)

iac_query.Codec.register("slow", Slow)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", ["validate", "repair"])
def test_ctrl_c(tmp_path, command):
    path = write_pack(tmp_path / "x.iac", payloads_of(5000), codec="slow")
    arguments = {"validate": ["--max-decode", "0"], "repair": [str(tmp_path / "out.iac")]}[command]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, command, str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "decoding\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "interrupted\n")
    assert files_in(tmp_path) == {"x.iac"}


def test_help_names_every_option(capsys):
    for command in ("validate", "repair"):
        with pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0
        options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
        assert {"--workers", "--no-progress", "--help"} < options


def test_the_entry_point_is_there():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    module, name = project["project"]["scripts"]["iac-query"].split(":")
    assert getattr(sys.modules[module], name) is main


def test_a_bar_beside_what_is_printed(tmp_path, capsys, monkeypatch):
    path = write_encoded(tmp_path / "x.iac", payloads_of(3), "zstd")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["validate", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{path}: ok") and "validate: 100%" in printed.err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["validate", str(path), "--no-progress"]) == 0
    assert capsys.readouterr().err == ""
