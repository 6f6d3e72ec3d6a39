"""Exit codes and one-line messages of every command."""

import ast
import errno
import gc
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import time

from absl import flags
import pytest

import symformer_jax
from symformer_jax import files
from symformer_jax.commands import runner
from symformer_jax.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def flag_values():
  values = flags.FlagValues()
  flags.DEFINE_integer("samples", 3, "How many.", flag_values=values)
  flags.DEFINE_string("data", None, "Which file.", flag_values=values)
  return values


@pytest.fixture(autouse=True)
def restored_signals():
  handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
  # A shell's background jobs ignore Ctrl-C; what is tested is a command that heeds it.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  for number, handler in handlers.items():
    signal.signal(number, handler)


def outcome(main, flag_values, *argv):
  with pytest.raises(SystemExit) as caught:
    runner.run(main, flag_values=flag_values, argv=["command", *argv])
  return caught.value.code


def test_done_and_codes_of_main(flag_values):
  assert outcome(lambda argv: None, flag_values, "--samples=5") == 0
  assert flag_values.samples == 5
  assert outcome(lambda argv: runner.SOME_FAILED, flag_values) == 1


def test_help_lists_flags_with_defaults(flag_values, capsys):
  assert outcome(lambda argv: 1, flag_values, "--help") == 0
  out, err = capsys.readouterr()
  assert "--samples: How many. (default: 3)" in out and "--data: Which file.\n" in out + "\n" and err == ""


def test_version(flag_values, capsys):
  assert outcome(lambda argv: 1, flag_values, "--version") == 0
  assert capsys.readouterr().out == f"symformer-jax {symformer_jax.__version__}\n"


@pytest.mark.parametrize(("argument", "message"), [
  ("--sample=3", "Unknown command line flag 'sample'. Did you mean: samples"),
  ("--samples=many", "flag --samples=many: expected a whole number, got 'many'"),
  ("points.csv", "unexpected argument 'points.csv'"),
])
def test_usage_errors_are_one_line_and_code_2(flag_values, capsys, argument, message):
  assert outcome(lambda argv: 0, flag_values, argument) == 2
  out, err = capsys.readouterr()
  assert out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err


@pytest.mark.parametrize(("file", "message"), [
  ("/dev/zero", "is no regular file"), ("missing", "No such file or directory"), ("folder", "Is a directory"),
  ("binary", "can't decode"), ("circle", "circle: names itself"), ("through", "circle: names itself"),
  ("dashes", "is no regular file"), ("long", "has more than 1000000 bytes"), ("zero\0", "null byte")])
@pytest.mark.parametrize("form", ["--flagfile={}", "-flagfile={}", "--flagfile {}"])
def test_a_file_of_flags_that_is_none_is_refused(file, message, form, flag_values, capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "folder").mkdir()
  (tmp_path / "binary").write_bytes(b"\xff\xfe--samples=3")
  (tmp_path / "circle").write_text("--samples=3\n--flagfile=circle\n")
  (tmp_path / "through").write_text("# as ever\n--flagfile=circle\n")
  (tmp_path / "dashes").write_text("--\n--flagfile=/dev/zero\n")  # absl reads on behind them
  (tmp_path / "long").write_text("#" * 1_000_001)
  assert outcome(lambda argv: 0, flag_values, *form.format(file).split(" ")) == 2
  error = capsys.readouterr().err
  assert message in error and error.startswith("error: --flagfile=") and error.count("\n") == 1


@pytest.mark.parametrize("argv", [["--files=a", "--files=b"], ["--files", "a", "-files=b"]])
def test_several_values_stand_in_one_flag(argv, capsys):
  values = flags.FlagValues()
  flags.DEFINE_list("files", [], "", flag_values=values)
  assert outcome(lambda argv: 0, values, *argv) == 2
  assert capsys.readouterr().err == ("error: --files is given twice, as 'a' and 'b': several values stand in one flag, "
                                     "with commas between; see --help\n")


def test_what_may_be_given_twice(tmp_path):
  values = flags.FlagValues()
  count = flags.DEFINE_integer("count", 0, "", flag_values=values)
  each = flags.DEFINE_multi_string("each", [], "", flag_values=values)
  names = flags.DEFINE_list("files", [], "", flag_values=values)
  (tmp_path / "f").write_text("--files=c\n")
  argv = ["--each=a", "--each=b", "--count=1", f"--flagfile={tmp_path}/f", "--count=2", "--files=a,b", "--files=a,b"]
  assert outcome(lambda argv: runner.DONE, values, *argv, "--", "--files=d") == runner.UNUSABLE  # arguments: not wanted
  assert (count.value, each.value, names.value) == (2, ["a", "b"], ["a", "b"])


def test_flags_are_read_from_a_file(flag_values, tmp_path):
  (tmp_path / "inner").write_text("--samples=4")
  (tmp_path / "outer").write_text(f"# why\n--flagfile={tmp_path / 'inner'}\n\n")
  assert outcome(lambda argv: None, flag_values, f"--flagfile={tmp_path / 'outer'}") == 0 and flag_values.samples == 4


def test_foreseen_errors_are_one_line_and_code_2(flag_values, capsys):
  def main(argv):
    raise InputError("no\n such file")
  assert outcome(main, flag_values) == 2
  assert capsys.readouterr().err == "error: no such file\n"


def test_a_device_that_is_not_there_is_one_line():
  environment = {**os.environ, "JAX_PLATFORMS": "nonsense"}
  found = subprocess.run([sys.executable, "-m", "symformer_jax.infer", "--data=examples/kepler.csv"], cwd=ROOT,
                         env=environment, capture_output=True, text=True, check=False, timeout=120)
  assert found.returncode == 2 and found.stderr.count("\n") == 1
  assert found.stderr.startswith("error: JAX_PLATFORMS=nonsense: Unable to initialize backend 'nonsense'")


def test_unforeseen_errors_keep_their_traceback(flag_values):
  def main(argv):
    raise ZeroDivisionError
  with pytest.raises(ZeroDivisionError):
    runner.run(main, flag_values=flag_values, argv=["command"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_with_75(flag_values, number):
  assert outcome(lambda argv: signal.raise_signal(number), flag_values) == 75


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_while_garbage_is_collected_stops_all_the_same(flag_values, number, capsys):
  def interrupt(phase, info):
    gc.callbacks.remove(interrupt)
    signal.raise_signal(number)

  def main(argv):
    gc.callbacks.append(interrupt)
    gc.collect()
    time.sleep(10)  # till the signal comes again

  assert outcome(main, flag_values) == 75
  assert capsys.readouterr().err == "stopped\n"


def test_an_interrupt_of_evaluated_text_stops_with_75_too(tmp_path):
  (tmp_path / "command.py").write_text(
    "import signal\nfrom symformer_jax.commands import runner\n"
    "runner.run(lambda argv: exec('signal.raise_signal(signal.SIGTERM)'))")
  done = subprocess.run([sys.executable, "-m", "command"], cwd=tmp_path, capture_output=True, text=True,
                        env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[2])})
  assert done.returncode == 75 and done.stderr == "stopped\n"


COMMANDS = sorted(str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
                  for folder in ("symformer_jax", "launch", "data_gen") for path in (ROOT / folder).rglob("*.py")
                  if "  runner.run(" in path.read_text() and path.name not in ("runner.py", "startup.py"))


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_while_a_command_is_imported_is_one_line(tmp_path, command):
  # In place of the first library that every command imports: one during whose import Ctrl-C comes.
  (tmp_path / "absl.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n")
  done = subprocess.run(
    [sys.executable, "-m", command], capture_output=True, text=True,
    env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}, cwd=tmp_path,
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
  assert (done.returncode, done.stdout, done.stderr) == (75, "", "stopped\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_libraries_have_nothing_to_say_to_the_user(tmp_path, command):
  # In place of the first library that every command imports: one that looks at what XLA will log, and pandas' warnings.
  (tmp_path / "pandas").mkdir()
  (tmp_path / "pandas" / "__init__.py").write_text("import warnings; warnings.warn('install another numexpr')")
  (tmp_path / "absl.py").write_text("import os, pandas; print(os.environ['TF_CPP_MIN_LOG_LEVEL']); os._exit(0)\n")
  environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
  for given, expected in (({}, "3"), ({"TF_CPP_MIN_LOG_LEVEL": "0"}, "0")):
    done = subprocess.run(
      [sys.executable, "-u", "-m", command], capture_output=True, text=True, cwd=tmp_path,
      env={**environment, **given, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    assert (done.stdout, done.stderr) == (f"{expected}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_comes_before_anything_heavy(command):
  code = ("import atexit, runpy, sys\n"
          f"sys.argv = [{command!r}, '--help']\n"
          "heavy = {'jax', 'numpy', 'pandas', 'matplotlib', 'sympy', 'flax', 'grain', 'apache_beam'}\n"
          "atexit.register(lambda: print('heavy:', *sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
          f"runpy.run_module({command!r}, run_name='__main__', alter_sys=True)")
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
  assert (done.returncode, done.stderr) == (0, "heavy:\n")
  module = importlib.util.find_spec(command)
  doc = ast.get_docstring(ast.parse(pathlib.Path(module.origin).read_text(encoding="utf-8")), clean=False).strip()
  assert done.stdout.startswith(f"{doc}\n\nFlags:\n  --") and "--verbosity" not in done.stdout


def test_version_comes_before_anything_heavy():
  code = ("import runpy, sys\n"
          "sys.argv = ['infer', '--version']\n"
          "sys.modules['jax'] = sys.modules['numpy'] = None\n"
          "runpy.run_module('symformer_jax.infer', run_name='__main__', alter_sys=True)")
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
  assert (done.returncode, done.stdout, done.stderr) == (0, f"symformer-jax {symformer_jax.__version__}\n", "")


@pytest.mark.parametrize(("command", "module"), [("launch.train", "grain"), ("launch.evaluate", "matplotlib")])
def test_a_missing_extra_is_one_line_before_anything_heavy(command, module):
  code = ("import importlib.util, runpy, sys\n"
          "find = importlib.util.find_spec\n"
          f"importlib.util.find_spec = lambda name, *more: None if name == {module!r} else find(name, *more)\n"
          f"sys.argv = [{command!r}]\n"
          f"runpy.run_module({command!r}, run_name='__main__', alter_sys=True)")
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
  extra = {"grain": "train", "matplotlib": "plot"}[module]
  message = f"error: this command needs {module}: pip install '.[{extra}]'\n"
  assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_a_reader_that_leaves_is_no_error():
  code = ("from symformer_jax.commands import runner\n"
          "def main(argv):\n"
          "  while True: print('row')\n"
          "runner.run(main)")
  done = subprocess.run(f'{sys.executable} -c "$CODE" | head -1', shell=True, capture_output=True, text=True,
                        env={**os.environ, "CODE": code}, cwd=pathlib.Path(__file__).parents[2])
  assert done.stdout == "row\n" and done.stderr == ""


def test_lines_about_what_is_written_elsewhere_need_no_reader():
  code = ("import sys, time\n"
          "from symformer_jax.commands import runner\n"
          "def main(argv):\n"
          "  for i in range(5):\n"
          "    runner.tell('row')\n"
          "    time.sleep(0.2)\n"
          "  runner.say('all written')\n"
          "runner.run(main)")
  done = subprocess.run(f'set -o pipefail; {sys.executable} -c "$CODE" | head -1', shell=True, capture_output=True,
                        executable="/bin/bash", text=True, env={**os.environ, "CODE": code}, cwd=ROOT)
  assert (done.returncode, done.stdout, done.stderr) == (0, "row\n", "all written\n")


def test_output_that_takes_nothing_more_is_one_line():
  code = ("from symformer_jax.commands import runner\n"
          "runner.run(lambda argv: print('row'))")
  with open("/dev/full", "w") as full:
    done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True,
                          cwd=pathlib.Path(__file__).parents[2])
  assert (done.returncode, done.stderr) == (1, "error: cannot write: No space left on device\n")


@pytest.mark.parametrize(("encoding", "printed"), [("utf-8", b"gr\xc3\xb6\xc3\x9fe \\udcff\n"),
                                                   ("ascii", b"gr\\xf6\\xdfe \\udcff\n")])
def test_signs_that_standard_output_cannot_encode_are_escaped(encoding, printed):
  code = ("from symformer_jax.commands import runner\n"
          "runner.run(lambda argv: print('gr\\xf6\\xdfe', '\\udcff'))")
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=pathlib.Path(__file__).parents[2],
                        env={**os.environ, "PYTHONIOENCODING": encoding})
  assert (done.returncode, done.stdout, done.stderr) == (0, printed, b"")


@pytest.mark.parametrize("environment", [os.environ, {"PATH": os.environ["PATH"]}], ids=["own", "bare"])
@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-"])
def test_errors_that_cannot_be_printed_are_told_by_the_exit_code(stream, environment):
  code = ("from symformer_jax.commands import runner\n"
          "runner.run(lambda argv: None, argv=['command', 'argument'])")
  done = subprocess.run(f'{sys.executable} -c "$CODE" {stream}', shell=True, stdout=subprocess.PIPE, text=True,
                        env={**environment, "CODE": code}, cwd=pathlib.Path(__file__).parents[2])
  assert (done.returncode, done.stdout) == (2, "")


def test_too_little_memory_while_a_command_is_imported_is_one_line():
  code = ("import sys\n"
          "from symformer_jax.commands import startup\n"
          "sys.argv = ['infer']\n"
          "startup.prepare('', 'symformer_jax.commands.infer_flags')\n"
          "raise {}")
  for error, message in (("MemoryError", "error: not enough memory\n"), ("KeyError('a')", "KeyError: 'a'\n")):
    done = subprocess.run([sys.executable, "-c", code.format(error)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and done.stderr.endswith(message)
    assert ("Traceback" in done.stderr) == (error != "MemoryError")


def test_a_limit_of_address_space_that_is_too_low_is_one_line():
  module = [sys.executable, "-m", "symformer_jax.infer"]
  for limit, arguments, code, message in (
      (1 << 30, ["--data=none.csv"], 1, "error: not enough memory: 1.1 GB of address space are allowed (ulimit -v), "
       "expected at least 2.1 GB\n"),
      (1 << 30, ["--version"], 0, ""), (3 << 30, ["--data=none.csv"], 2, "error: --data: no such file: 'none.csv'\n")):
    done = subprocess.run(["prlimit", f"--as={limit}", *module, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (code, message)


def test_too_little_memory_is_one_line(flag_values, capsys):
  def main(argv):
    raise MemoryError
  assert outcome(main, flag_values) == runner.SOME_FAILED
  assert capsys.readouterr().err == "error: not enough memory\n"


def test_errors_are_one_line_of_signs_that_can_be_printed(flag_values, capsys):
  def main(argv):
    raise InputError("no file 'a\n\x1b[31m\udcff" + "b" * 5000 + "': give another")
  assert outcome(main, flag_values) == 2
  err = capsys.readouterr().err
  assert err.startswith("error: no file 'a \\x1b[31m\\udcffbbb") and err.endswith("b': give another\n")
  assert len(err) < 1100 and err.count("\n") == 1


def test_nan_is_no_number(flag_values, capsys):
  flags.DEFINE_float("noise", 0.5, "How much.", lower_bound=0, flag_values=flag_values)
  assert outcome(lambda argv: 0, flag_values, "--noise=nan") == 2
  assert capsys.readouterr().err == "error: flag --noise=nan: expected a number; see --help\n"
  assert outcome(lambda argv: 0, flag_values, "--noise=inf") == 0


def test_a_config_that_exits_is_no_success(flag_values, capsys):
  class Leaving(flags.ArgumentParser):
    def parse(self, argument):
      raise SystemExit(0)
  flags.DEFINE(Leaving(), "config", None, "Which.", flag_values=flag_values)
  assert outcome(lambda argv: 0, flag_values, "--config=mine.py") == 2
  assert capsys.readouterr().err == "error: SystemExit: 0; see --help\n"


def test_what_a_config_raises_may_have_no_text(flag_values, capsys):
  class Wordless(Exception):
    def __str__(self):
      raise OSError

  class Failing(flags.ArgumentParser):
    def parse(self, argument):
      raise Wordless
  flags.DEFINE(Failing(), "config", None, "Which.", flag_values=flag_values)
  assert outcome(lambda argv: 0, flag_values, "--config=mine.py") == 2
  assert capsys.readouterr().err == "error: Wordless; see --help\n"


def test_flags_with_nothing_are_refused(flag_values, capsys):
  name = flags.DEFINE_list("names", None, "Which.", flag_values=flag_values)
  main = lambda argv: runner.refuse_empty(name)  # noqa: E731
  assert outcome(main, flag_values, "--names=") == 2
  assert capsys.readouterr().err == "error: --names: expected a value, got nothing\n"
  for some in (",", "a,", "a,,b"):
    assert outcome(main, flag_values, f"--names={some}") == 2
    assert capsys.readouterr().err == "error: --names: expected a value between two commas, got nothing\n"
  assert outcome(main, flag_values, "--names=a") == 0
  flag_values["names"].unparse()
  assert outcome(main, flag_values) == 0


def test_a_flag_that_must_be_given_is_asked_for_by_name(flag_values, capsys):
  size, taken = flags.DEFINE_integer("size", None, "How large.", flag_values=flag_values), []
  main = lambda argv: taken.append(runner.required(size))  # noqa: E731
  assert outcome(main, flag_values) == 2 and not taken
  assert capsys.readouterr().err == "error: --size is required\n"
  assert outcome(main, flag_values, "--size=0") == 0 and taken == [0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stop_request_waits_once(number):
  stop = runner.StopRequest()
  assert not stop.is_set()
  signal.raise_signal(number)
  assert stop.is_set()
  with pytest.raises(KeyboardInterrupt):
    signal.raise_signal(number)


def test_a_terminal_that_is_closed_ends_no_command_of_nohup(flag_values):
  signal.signal(signal.SIGHUP, signal.SIG_IGN)
  stop = runner.StopRequest()
  signal.raise_signal(signal.SIGHUP)
  assert not stop.is_set()
  assert outcome(lambda argv: signal.raise_signal(signal.SIGHUP), flag_values) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_is_ignored_stays_so(number, flag_values):
  signal.signal(number, signal.SIG_IGN)
  stop = runner.StopRequest()
  signal.raise_signal(number)
  assert not stop.is_set() and signal.getsignal(number) == signal.SIG_IGN
  assert outcome(lambda argv: signal.raise_signal(number), flag_values) == 0


def test_files_are_whole_or_absent(tmp_path):
  path = tmp_path / "out.json"
  files.write_text(path, "old")
  with pytest.raises(RuntimeError), files.replacing(path) as temporary:
    temporary.write_text("half")
    raise RuntimeError
  assert path.read_text() == "old" and os.listdir(tmp_path) == ["out.json"]


def test_a_page_about_a_file_whose_name_is_no_text_is_written(tmp_path):
  files.write_text(tmp_path / "out.html", "of \udcff.csv")
  assert (tmp_path / "out.html").read_text() == "of \\udcff.csv"


def test_unwritable_outputs_are_refused_before(tmp_path):
  with pytest.raises(InputError, match="--out: the folder '.*nowhere' of .* does not exist"):
    files.check_writable(tmp_path / "nowhere" / "x.json", flag="--out")
  with pytest.raises(InputError, match="is a folder, expected a file name"):
    files.check_writable(tmp_path, flag="--out")
  os.mkfifo(tmp_path / "pipe.jsonl")
  with pytest.raises(InputError, match="pipe.jsonl' is no regular file, expected a file name"):
    files.check_writable(tmp_path / "pipe.jsonl", flag="--out")
  (tmp_path / "pipe.jsonl").unlink()
  # Permissions alone would allow these, at least to a superuser.
  for path in ("/proc/x.json", "/sys/x.json", "a" * 5000 + ".json", tmp_path / "a\0b.json"):
    with pytest.raises(InputError, match="--out: cannot write '") as caught:
      files.check_writable(path, flag="--out")
    assert len(str(caught.value)) < 300
  files.check_writable(tmp_path / "x.json", flag="--out")
  assert not list(tmp_path.iterdir())


def test_a_full_disk_is_seen_before(tmp_path, monkeypatch):
  def fsync(handle):
    raise OSError(errno.ENOSPC, "No space left on device")
  monkeypatch.setattr(os, "fsync", fsync)
  with pytest.raises(InputError, match="--out: cannot write '.*x.json': No space left on device"):
    files.check_writable(tmp_path / "x.json", flag="--out")
  assert not list(tmp_path.iterdir())
