"""Formulas for the tables of many files by the workers of a cluster (extra [beam]): what `infer --beam` runs.

Workers search bundles of files and put the lines of each bundle into a file of its own, `DIR/parts/*.jsonl`; when all
are there this process puts them together, in the order of the files, as `DIR/results.jsonl`: the lines that a batch of
one machine writes. What is there already, `--resume` does not search again.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, process
import contextlib
import hashlib
import multiprocessing
import os
import pathlib
import shutil
import sys
import tempfile
from typing import Any
import uuid

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions, TypeOptions

from symformer_jax import file_answers, files, infer_worker
from symformer_jax.commands import infer_flags as asked, result_lines, runner, tables
from symformer_jax.errors import InputError
from symformer_jax.results import FAILED

RESULTS = "results.jsonl"
_REMOTE = "://"


class _SearchBundle(beam.DoFn):
  """Searches a bundle of files and writes their lines to a file.

  It searches in a process of its own: what kills that, or is nobody's to foresee, costs one file, not the bundle.
  """

  def __init__(self, flags: Mapping[str, Any], *, is_single: bool, here: str, folder: str):
    """`flags`: values by name; `is_single`: of `answer_many`; `here`: what relative paths are relative to."""
    self._flags, self._is_single, self._here, self._folder = dict(flags), is_single, here, folder
    self._pool: ProcessPoolExecutor | None = None

  def process(self, paths: Sequence[str]) -> Iterator[str]:
    """Yields the name of the file that has the lines."""
    with tempfile.TemporaryDirectory() as temporary:
      found = self._answer([(path, _fetch(path, pathlib.Path(temporary) / str(i))) for i, path in enumerate(paths)])
    _write_text(place := _part(self._folder, paths), "".join(line + "\n" for line in found))
    yield place

  def teardown(self) -> None:
    self._end()

  def _answer(self, paths: list[tuple[str, str]]) -> list[str]:
    try:
      return self._run(infer_worker.answer_files, paths, self._is_single)
    except process.BrokenProcessPool:
      self._end()
      message = "the process that searched it died, as one does that takes more memory than there is"
    except Exception as error:  # noqa: BLE001  # whatever it is, the other files have their answers
      message = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    if len(paths) > 1:
      return [line for path in paths for line in self._answer([path])]
    return [self._run(infer_worker.refuse, paths[0][0], message)]

  def _run(self, function: Any, *arguments: Any) -> Any:
    if self._pool is None:
      self._pool = ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), initializer=infer_worker.begin, initargs=(self._flags, self._here))
    return self._pool.submit(function, *arguments).result()

  def _end(self) -> None:
    if self._pool is not None:
      self._pool.shutdown()
      self._pool = None


# --- files, also those of object stores ------------------------------------------------------------------------------


def _fetch(path: str, folder: pathlib.Path) -> str:
  """Where a file can be read: its path, or of an object store a copy."""
  if _REMOTE not in path:
    return path
  folder.mkdir()
  place = folder / path.rsplit("/", 1)[1]
  with FileSystems.open(path) as source, open(place, "wb") as target:
    shutil.copyfileobj(source, target)
  return str(place)


def _part(folder: str, paths: Sequence[str]) -> str:
  """The file of a bundle: named by what is in it, so that a bundle that is tried again has one file."""
  return FileSystems.join(folder, "parts", hashlib.sha256("\0".join(paths).encode()).hexdigest()[:24] + ".jsonl")


def _write_text(path: str, text: str) -> None:
  """Whole or not at all."""
  temporary = f"{path}.{uuid.uuid4().hex}.tmp"
  with FileSystems.create(temporary) as file:
    file.write(text.encode())
  FileSystems.rename([temporary], [path])


def _find(pattern: str) -> list[str]:
  return sorted(each.path for each in FileSystems.match([pattern])[0].metadata_list)


def find_files(patterns: Sequence[str]) -> list[str]:
  """As `tables.find_files`, also of object stores."""
  found: list[str] = []
  for pattern in patterns:
    matches = _find(pattern) if _REMOTE in pattern else tables.find_files([pattern])
    if not matches:
      raise InputError(f"--data: no file matches {pattern!r}")
    found += matches
  return list(dict.fromkeys(found))


# --- in the process of the command -----------------------------------------------------------------------------------


def run(arguments: Sequence[str]) -> int:
  """Searches the files of --data and writes the results; the exit code.

  Args:
    arguments: for Beam and its runner.
  Raises:
    InputError: for a model that is none, and results that are not to be replaced.
  """
  paths, folder = find_files(runner.required(asked.DATA)), runner.required(asked.OUT)
  if asked.MODEL.value != "auto":  # what is no model is no file's fault
    from symformer_jax import inference

    inference.resolve_model(asked.MODEL.value, num_variables=1)
  try:
    with _claimed(folder):
      lines = _begin_folder(folder)
      _run_pipeline([path for path in paths if path not in lines], len(paths) == 1, folder, arguments)
      return _put_together(paths, folder)
  except OSError as error:
    raise InputError(f"--out: cannot write to {folder!r}: {files.reason(error)}") from None


def _claimed(folder: str) -> contextlib.AbstractContextManager[None]:
  """The folder to this process, see `files.claimed`; object stores have no locks."""
  if _REMOTE in folder:
    return contextlib.nullcontext()
  return files.claimed(files.make_folder(folder, flag="--out"), flag="--out")


def _begin_folder(folder: str) -> dict[str, list[str]]:
  """Makes the folder of the results, or looks at what is there: lines by file."""
  results, parts = FileSystems.join(folder, RESULTS), FileSystems.join(folder, "parts")
  there = [path for path in (results, parts) if FileSystems.exists(path)]
  if there and not (asked.RESUME.value or asked.OVERWRITE.value):
    raise InputError(f"--out: {folder!r} has results; --resume goes on with them, --overwrite begins anew")
  lines = _read_lines(folder) if asked.RESUME.value else {}
  if not asked.RESUME.value and there:
    FileSystems.delete(there)
  if not FileSystems.exists(parts):
    FileSystems.mkdirs(parts)
  return lines


def _read_lines(folder: str) -> dict[str, list[str]]:
  """The lines of each file of data, of which there are all or none."""
  lines: dict[str, list[str]] = {}
  for place in _find(FileSystems.join(folder, RESULTS)) + _find(FileSystems.join(folder, "parts", "*.jsonl")):
    with FileSystems.open(place) as file:
      read = file.read().decode().splitlines()
    here: dict[str, list[str]] = {}
    for number, line in enumerate(read, start=1):
      name = result_lines.check_line(
        line, path=place, number=number, options=file_answers.options(),
        defaults=file_answers.default_options()).name
      here.setdefault(name, []).append(line)
    lines |= here
  return lines


def _run_pipeline(waiting: list[str], is_single: bool, folder: str, arguments: Sequence[str]) -> None:
  size = asked.BUNDLE.value
  bundles = [waiting[begin : begin + size] for begin in range(0, len(waiting), size)]
  if not bundles:
    return
  values = {flag.name: flag.value for flag in asked.DECISIVE} | {asked.QUIET.name: True}
  options = PipelineOptions(list(arguments))
  standard = options.view_as(StandardOptions)
  standard.runner = standard.runner or "DirectRunner"
  if standard.runner == "DirectRunner":
    # No trigger is used here; without this Beam fetches a runner written in Go from the network first.
    options.view_as(TypeOptions).allow_unsafe_triggers = True
  with beam.Pipeline(options=options) as pipeline:
    search = _SearchBundle(values, is_single=is_single, here=os.getcwd(), folder=folder)
    _ = pipeline | beam.Create(bundles) | beam.Reshuffle() | beam.ParDo(search)


def _put_together(paths: Sequence[str], folder: str) -> int:
  """Writes the lines of all files, in their order after those of others that were there; the exit code."""
  lines = _read_lines(folder)
  others = [path for path in lines if path not in set(paths)]
  ordered = [line for path in (*others, *paths) for line in lines[path]]
  place = FileSystems.join(folder, RESULTS)
  _write_text(place, "".join(line + "\n" for line in ordered))
  FileSystems.delete([FileSystems.join(folder, "parts")])
  checked = [result_lines.check_line(line, path=place, number=number, options={}, defaults={})
             for number, line in enumerate(ordered, start=1)]
  lost = [each for each in checked if each.status == FAILED]
  if not asked.QUIET.value:
    print(f"{len(paths)} files, {place}")
  for each in lost:
    print(f"failed: {each.message}", file=sys.stderr)
  return runner.SOME_FAILED if lost else runner.DONE
