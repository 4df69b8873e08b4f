"""The command line: ``python -m iac_query``, or ``iac-query`` where the package is installed."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from tqdm import tqdm

from .errors import PackError
from .validation import repair
from .validation._validate import found_packs, reports
from .validation.report import ValidationReport

_OK, _FINDINGS, _USAGE, _INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, ``sys.argv``'s unless another is given, and returns its exit status.

    0 for packs without errors, 1 for packs with some and for a refused repair, 2 for what cannot be
    read or written, 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):  # names of files need not be Unicode
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = options.command(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read the output has enough; nothing is flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FINDINGS
    except (OSError, ValueError) as error:
        print(f"{options.name}: {_said(error)}", file=sys.stderr)
        refused = isinstance(error, PackError) and not isinstance(error, OSError)
        return _FINDINGS if refused else _USAGE


def _said(error: Exception) -> str:
    if isinstance(error, FileExistsError):
        return f"{error.filename}: there is a file, pass --overwrite"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("iac_query", description="Checks and repairs .iac packs.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    check = commands.add_parser(
        "validate", help="report what is wrong with packs", description="Reports what is wrong."
    )
    check.add_argument("paths", nargs="+", metavar="PATH", help="pack, folder, pattern or URL")
    check.add_argument(
        "--max-decode", type=_count, default=8, metavar="N", help="records to decode; 0: all (8)"
    )
    check.add_argument(
        "--max-crc", type=_count, default=0, metavar="N", help="crc32s to compare; 0: all (0)"
    )
    check.add_argument("--fail-fast", action="store_true", help="stop behind a bad pack")
    check.set_defaults(command=_validate, name="validate")

    mend = commands.add_parser(
        "repair",
        help="write a pack without its damaged rows",
        description="Writes a pack without its damaged rows.",
    )
    mend.add_argument("source", metavar="IN")
    mend.add_argument("out", metavar="OUT")
    mend.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    mend.set_defaults(command=_repair, name="repair")

    for command in (check, mend):
        command.add_argument("--workers", type=_workers, metavar="N", help="threads that decode")
        command.add_argument(
            "--no-progress", dest="progress", action="store_false", default=None, help="show no bar"
        )
    return parser


def _validate(options: argparse.Namespace) -> int:
    files = found_packs(options.paths)
    done = []
    for report in reports(
        files,
        options.max_decode,
        options.max_crc,
        workers=options.workers,
        progress=options.progress,
    ):
        done.append(report)
        tqdm.write(str(report), file=sys.stdout)
        if options.fail_fast and not report.ok:
            break
    whole = ValidationReport(done)
    if len(files) > 1:
        print(whole.summary)
    return _OK if whole.ok else _FINDINGS


def _repair(options: argparse.Namespace) -> int:
    report = repair(
        options.source,
        options.out,
        options.overwrite,
        workers=options.workers,
        progress=options.progress,
    )
    print(report)
    return _OK


def _count(text: str) -> int:
    return _at_least(text, 0)


def _workers(text: str) -> int:
    return _at_least(text, 1)


def _at_least(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} on")
    return int(text)
