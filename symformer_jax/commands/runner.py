"""Runs a command: parses its flags, brings every outcome to one set of exit codes, prints errors in one line.

Used by every command of the project in place of absl's own runner, whose exit codes and messages differ. Errors
nobody foresaw keep their traceback.
"""

import _thread
from collections.abc import Callable, Sequence
import contextlib
import errno
import functools
import io
import math
import os
import pathlib
import re
import signal
import sys
import threading
from typing import NoReturn, TextIO, TypeVar

from absl import flags

import symformer_jax
from symformer_jax.commands import startup
from symformer_jax.errors import InputError, SymFormerError, describe
from symformer_jax.files import check_regular, reason, shorten

T = TypeVar("T")

DONE = 0
SOME_FAILED = 1
UNUSABLE = 2
# EX_TEMPFAIL of sysexits.h: try the same command again.
STOPPED = 75
# Letters of a message: a paragraph, whatever long names are in it.
MAX_MESSAGE = 1000
# Bytes of a file of flags: thousands of them.
MAX_FLAG_FILE = 1_000_000


class StopRequest:
  """Turns `startup.stop_signals` into a wish that long work looks at between steps; the second one stops at once."""

  def __init__(self) -> None:
    self._is_set = False
    for number in startup.stop_signals():
      signal.signal(number, self._on_signal)

  def is_set(self) -> bool:
    return self._is_set

  def set(self) -> None:
    """The wish without a signal: what is under way is ended, nothing new begun."""
    self._is_set = True

  def _on_signal(self, *_: object) -> None:
    if self._is_set:
      raise KeyboardInterrupt
    self._is_set = True


def required(flag: flags.FlagHolder[T | None]) -> T:
  """The value of a flag that must be given.

  Raises:
    InputError: it was not.
  """
  if flag.value is None:
    raise InputError(f"--{flag.name} is required")
  return flag.value


def refuse_empty(*given: flags.FlagHolder) -> None:
  """Refuses flags that were given with nothing, as in `--out=`: a script's variable was empty; and lists with nothing
  between two commas, which would be a folder's name for the one that the command runs in.

  Raises:
    InputError: names the first one.
  """
  for flag in given:
    if flag.value is not None and len(flag.value) == 0:
      raise InputError(f"--{flag.name}: expected a value, got nothing")
    if isinstance(flag.value, list) and "" in flag.value:
      raise InputError(f"--{flag.name}: expected a value between two commas, got nothing")


def run(
  main: Callable[[list[str]], int | None], *, flag_values: flags.FlagValues = flags.FLAGS,
  argv: Sequence[str] | None = None, takes_arguments: bool = False, doc: str | None = None,
  flags_module: str | None = None,
) -> NoReturn:
  """Parses flags, calls `main(rest of argv)` and exits: 0 done, 1 some failed, 2 unusable, 75 stopped.

  Args:
    main: returns an exit code; None is 0. Raises `SymFormerError` for what a user can mend.
    flag_values: where the command's flags are defined.
    argv: default `sys.argv`.
    takes_arguments: whether `main` reads arguments that are no flags.
    doc: what --help says before the flags; by default the docstring of main's module.
    flags_module: where the command's flags are defined among others; None: all are its own.
  """
  argv = list(sys.argv if argv is None else argv)
  show_help = functools.partial(_help, doc or main.__globals__.get("__doc__"), flag_values, flags_module)
  code = _outcome(main, flag_values, argv, takes_arguments, show_help)
  # CPython ends `python -m` by SIGINT, whatever the exit code, when a KeyboardInterrupt has passed through text that
  # `eval` ran (namedtuple and lazily imported modules do) and no other text ran since.
  exec("")
  sys.exit(code)


def _outcome(
  main: Callable[[list[str]], int | None], flag_values: flags.FlagValues, argv: list[str], takes_arguments: bool,
  show_help: Callable[[], str],
) -> int:
  startup.end_imports()
  for number in startup.stop_signals():
    if number != signal.SIGINT:  # which is Python's own
      signal.signal(number, _interrupt)
  _print_any_sign()
  before, sys.unraisablehook = sys.unraisablehook, _repeat_lost
  try:
    if startup.HELP & set(argv[1:]):
      print(show_help())
      return DONE
    if startup.VERSION & set(argv[1:]):
      print(f"symformer-jax {symformer_jax.__version__}")
      return DONE
    rest = _parse(flag_values, argv)
    if len(rest) > 1 and not takes_arguments:
      return _fail(f"unexpected argument {rest[1]!r}: expected flags only, see --help")
    code = main(rest) or DONE
    _flush(sys.stdout)  # here, where what goes wrong can still be said
    return code
  except flags.Error as error:
    return _fail(f"{_in_words(str(error))}; see --help")
  except SymFormerError as error:
    return _fail(str(error))
  except KeyboardInterrupt:
    say("stopped")
    return STOPPED
  except MemoryError:
    say("error: not enough memory")
    return SOME_FAILED
  except (AssertionError, RuntimeError) as error:
    if missing := _describe_missing_device(error):
      return _fail(missing)
    if _NO_THREAD not in str(error):
      raise
    say(f"error: {_NO_THREAD}: too many processes, or not enough memory")
    return SOME_FAILED
  except BrokenPipeError:  # the reader of our output, such as `head`, has left
    return SOME_FAILED
  except OSError as error:
    if error.errno not in _NO_ROOM + _SCARCE and not error.filename:
      raise
    what = "cannot write: " if error.errno in _NO_ROOM else ""
    where = f" ({error.filename})" if error.filename else ""
    say(one_line(f"error: {what}{reason(error)}{where}"))
    return SOME_FAILED
  finally:
    sys.unraisablehook = before
    _drop_unwritable_output()


# What any write may meet, wherever it stands: disk full, quota or limit reached, no longer writable, a broken device.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
# What a machine may have too little of: open files, processes, memory. Other faults of the system name a path, which
# may not be entered or is too long; without one they are faults of the code.
_SCARCE = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


# What JAX says where it is told to compute on what is not there.
_NO_DEVICE = "Unable to initialize backend"
# What Python says where the system gives no thread.
_NO_THREAD = "can't start new thread"
# What ml_collections says of a key that a config has not.
_NEAR_KEY = re.compile(r'Did you mean "(.+?)" instead of "(.+?)"')


def _describe_missing_device(error: Exception) -> str:
  """Of an error of JAX about the device that it is to compute on; empty for any other."""
  asked = os.environ.get("JAX_PLATFORMS")
  if _NO_DEVICE in str(error):
    return f"JAX_PLATFORMS={asked}: {error}" if asked else str(error)
  if asked and isinstance(error, AssertionError) and not error.args and _is_without_device():
    return f"JAX_PLATFORMS={asked}: no such device is there (set JAX_PLATFORMS='' to automatically choose one)"
  return ""


def _is_without_device() -> bool:
  """Whether JAX finds nothing to compute on: a GPU that is asked for and not there it passes over, and asserts that
  something is left.
  """
  import jax  # has failed already: of what needs no JAX the runner does not load it

  try:
    jax.devices()
  except AssertionError:
    return True
  return False


def _describe_missing_key(error: BaseException, argv: Sequence[str]) -> str:
  """Of an error about `--config.KEY=VALUE` where the config has no such key; empty for any other."""
  if not isinstance(error, KeyError | AttributeError) or not error.args:
    return ""
  text = str(error.args[0])
  near = _NEAR_KEY.search(text)
  key = near[2] if near else text.strip("\"'")
  for argument in argv:
    flag = argument.partition("=")[0]
    if argument.startswith("-") and key in flag.split(".")[1:]:
      return f"{flag}: the config has no key {key!r}" + (f": did you mean {near[1]!r}?" if near else "")
  return ""


def _print_any_sign() -> None:
  """Names of files and columns may have signs that standard output cannot encode: they are escaped, as those of errors
  are, for what was found is not to be lost.
  """
  if isinstance(sys.stdout, io.TextIOWrapper):
    sys.stdout.reconfigure(errors="backslashreplace")


def _flush(stream: TextIO | None) -> None:
  if stream is not None:  # as it is for a process that was begun without one
    stream.flush()


def _drop_unwritable_output() -> None:
  """What standard output or error did not take may not be tried again at exit: a traceback, and another exit code."""
  for stream in (sys.stdout, sys.stderr):
    try:
      _flush(stream)
    except OSError:
      _drop(stream)


def _drop(stream: TextIO) -> None:
  """What is written to a stream from now on, or waits to be, is nobody's."""
  os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _interrupt(*_: object) -> None:
  raise KeyboardInterrupt


# Until a signal that was lost comes again: long enough for Python to leave what it was lost in.
REPEAT_S = 0.01


def _repeat_lost(lost: "sys.UnraisableHookArgs") -> None:
  """A signal that comes while garbage is collected is raised in a library's hook of that (JAX has one), where Python
  prints what is raised and goes on, as in destructors: instead of a traceback the signal comes again.
  """
  if not isinstance(lost.exc_value, KeyboardInterrupt):
    sys.__unraisablehook__(lost)
  elif numbers := startup.stop_signals():
    threading.Timer(REPEAT_S, _thread.interrupt_main, numbers[:1]).start()


def _check_flag_files(argv: Sequence[str], within: tuple[str, ...] = ()) -> None:
  """Refuses as a `--flagfile` what may have no end, devices and pipes, and what is no text or names itself."""
  arguments = list(argv[: argv.index("--")] if "--" in argv and not within else argv)
  for i, argument in enumerate(arguments):
    found = re.fullmatch(r"--?flagfile(?:=(.*))?", argument.strip())
    if found and found[1] == "":  # which absl passes over
      raise flags.Error("--flagfile: expected a value, got nothing")
    if not found or not (name := "".join(arguments[i + 1 : i + 2]) if found[1] is None else found[1]):
      continue
    path = pathlib.Path(name.strip()).expanduser()
    try:
      if str(path) in within:
        raise flags.Error(f"--flagfile={shorten(name)}: names itself")
      check_regular(path)
      if path.stat().st_size > MAX_FLAG_FILE:
        raise flags.Error(f"--flagfile={shorten(name)}: has more than {MAX_FLAG_FILE} bytes")
      lines = path.read_text().split("\n")
    except (OSError, ValueError, RuntimeError) as error:  # no text; a path with a zero byte; no such home
      raise flags.Error(f"--flagfile={shorten(name)}: {reason(error)}") from error
    _check_flag_files(lines, (*within, str(path)))


def _refuse_repeated(flag_values: flags.FlagValues, argv: Sequence[str]) -> None:
  """Refuses a flag of several values that is given twice with different ones, of which absl keeps the last alone. Of
  one value the last counts, as scripts use it, and the command line may change what a `--flagfile` says.
  """
  arguments = list(argv[: argv.index("--")] if "--" in argv else argv)
  known: dict[str, str] = {}
  for i, argument in enumerate(arguments):
    found = re.fullmatch(r"--?(\w+)(?:=(.*))?", argument, re.DOTALL)
    if found is None or found[1] not in flag_values or not isinstance(flag_values[found[1]].parser, flags.ListParser):
      continue
    name, value = found[1], "".join(arguments[i + 1 : i + 2]) if found[2] is None else found[2]
    if known.setdefault(name, value) != value:
      raise flags.Error(f"--{name} is given twice, as {shorten(known[name])!r} and {shorten(value)!r}: several values "
                        "stand in one flag, with commas between")


def _parse(flag_values: flags.FlagValues, argv: list[str]) -> list[str]:
  try:
    _check_flag_files(argv[1:])
    _refuse_repeated(flag_values, argv[1:])
    rest = flag_values(argv)
  except (flags.Error, KeyboardInterrupt):
    raise
  # Config files are run while flags are parsed: whatever goes wrong is the user's to mend, and ends nothing as if done.
  except BaseException as error:
    if missing := _describe_missing_key(error, argv):
      raise InputError(missing) from None
    # The text of a KeyError is the repr of its message.
    is_key = isinstance(error, KeyError) and error.args
    raise flags.Error(f"{type(error).__name__}: {error.args[0]}" if is_key else describe(error)) from error
  for name in flag_values:
    value = flag_values[name].value
    if isinstance(value, float) and math.isnan(value):  # passes every bound, above or below
      raise flags.Error(f"flag --{name}=nan: expected a number")
  return rest


# ml_collections puts the traceback before what a config file raised.
_CONFIG_TRACE = re.compile(
  r'Error whilst parsing config file:\s+Traceback .*\n  File "[^\n]*\n(?: [^\n]*\n)*', re.DOTALL)


def _in_words(message: str) -> str:
  """What flags say of a text that is no number, without the names of Python's functions; of a config that fails, what
  it raised.
  """
  message = _CONFIG_TRACE.sub("", message).strip()
  message = re.sub(r"invalid literal for int\(\) with base 10: ", "expected a whole number, got ", message)
  message = re.sub(r"Unable to parse the value (.*?) as a comma separated list of strings: new-line character .*",
                   r"a name with a line break in it stands in double quotes, got \1", message, flags=re.DOTALL)
  message = re.sub(r"\('Non-boolean argument to boolean flag', (.*?)\)", r"expected true or false, got \1", message)
  return re.sub(r"could not convert string to float: ", "expected a number, got ", message)


def _fail(message: str) -> int:
  say("error: " + one_line(message))
  return UNUSABLE


def one_line(message: str) -> str:
  """A message in one line that people can read: what cannot be printed, such as the sign that moves a terminal's
  cursor, is escaped, and the middle of a very long one left out.
  """
  signs = " ".join(message.split())
  plain = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in signs)
  return shorten(plain, MAX_MESSAGE)


def tell(line: str) -> None:
  """A line on standard output about what is written elsewhere: a reader that leaves, such as `head`, ends nothing."""
  try:
    print(line, flush=True)
  except BrokenPipeError:
    _drop(sys.stdout)


def need_output() -> None:
  """Refuses, before it is begun, work whose results are printed alone where there is no standard output (`>&-`).

  Raises:
    OSError: as for a device that takes nothing.
  """
  if sys.stdout is None:
    raise OSError(errno.EIO, "standard output is closed")


def say(line: str) -> None:
  """A line on standard error; where that is closed or takes nothing more, the exit code says it alone."""
  if sys.stderr is not None:  # print would write to standard output
    with contextlib.suppress(OSError):
      print(line, file=sys.stderr, flush=True)


def _help(doc: str | None, flag_values: flags.FlagValues, module: str | None) -> str:
  """The command's own docstring and flags; absl's would list those of every imported library too."""
  own = flag_values.get_key_flags_for_module(module) if module else []
  lines = [(doc or "").strip(), "", "Flags:"]
  for flag in sorted(own or [flag_values[name] for name in flag_values], key=lambda f: f.name):
    default = "" if flag.default is None else f" (default: {(flag.default_as_str or '').strip(chr(39))})"
    lines.append(f"  --{flag.name}: {' '.join((flag.help or '').split())}{default}")
  return "\n".join(lines)
