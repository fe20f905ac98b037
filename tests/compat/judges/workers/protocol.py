"""The loop of a Python worker: commands in, answers out. Runs inside a judge's environment, not in the test process."""

import json
import os
import sys
import traceback

import pyarrow as pa


def serve(commands):
    """Answer commands until the input ends; `commands` maps a command's name to a function of its arguments."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints goes to standard error: the protocol owns standard output
    for line in sys.stdin:
        try:
            arguments = json.loads(line)
            answer = {"ok": commands[arguments.pop("do")](**arguments)}
        except BaseException as failure:  # noqa: BLE001  a panic of native code is not an Exception, and no failure may end the loop
            answer = {"error": f"{type(failure).__name__}: {failure}", "trace": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def read_table(path):
    with pa.OSFile(path) as source:
        return pa.ipc.open_file(source).read_all()


def write_table(path, table):
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
