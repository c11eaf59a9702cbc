"""Signals that come while a program is recorded, in small programs of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from warpline.capture.this_process import ENDING_SIGNALS

HOLD = """
import os, signal, sys
from warpline.capture.this_process import LastWords, hold_signals
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's children inherit that it is ignored
def send(*names):
    for name in names: os.kill(os.getpid(), getattr(signal, name))
"""


def outcome(code: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", HOLD + code], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("number", ENDING_SIGNALS, ids=lambda number: number.name)
def test_a_signal_that_ends_a_program_has_the_word_said_first_also_when_it_comes_twice(number: int) -> None:
    code = f"""
def say(name):
    with hold_signals():
        send(name)
        print(name, 'said', flush=True)
LastWords(say).hold()
os.kill(os.getpid(), {int(number)})
"""
    name = "SIGTERM" if number == ENDING_SIGNALS[0] else "SIGHUP"
    assert outcome(code) == (-number, f"{name} said\n")


def test_released_signals_and_those_that_the_program_handles_are_as_ever() -> None:
    code = """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
words = LastWords(print)
words.hold()
send('SIGHUP')
words.release()
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
words.hold()
signal.signal(signal.SIGTERM, lambda *_: print('mine', flush=True))
words.release()
send('SIGTERM')
"""
    assert outcome(code) == (0, "mine\n")


def test_what_comes_while_signals_are_held_comes_afterwards() -> None:
    code = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
signal.signal(signal.SIGTERM, lambda *_: print('mine', flush=True))
try:
    with hold_signals():
        send('SIGTERM', 'SIGINT')
        print('written', flush=True)
except KeyboardInterrupt:
    print('interrupted', flush=True)
"""
    code_, said = outcome(code)
    assert (code_, sorted(said.split())) == (0, ["interrupted", "mine", "written"])
    assert said.startswith("written")
