"""Every option that other implementations know is one that we know: honoured, refused by name, or warned of."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.compat.judges.environments import JudgeUnavailable, prepare

from lakebed.options.table import find_option

pytestmark = pytest.mark.compat

PYTHON_KEYS = """
import json
from pypaimon.common.options.config_option import ConfigOption
from pypaimon.common.options.core_options import CoreOptions
found = [value.key() for value in vars(CoreOptions).values() if isinstance(value, ConfigOption)]
print(json.dumps(found))
"""

JAVA_KEYS = """
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import org.apache.paimon.options.ConfigOption;

public class OptionKeys {
    public static void main(String[] names) throws Exception {
        for (String name : names) {
            for (Field field : Class.forName(name).getFields()) {
                boolean isOption = ConfigOption.class.isAssignableFrom(field.getType());
                if (Modifier.isStatic(field.getModifiers()) && isOption) {
                    System.out.println(((ConfigOption<?>) field.get(null)).key());
                }
            }
        }
    }
}
"""


def ready(name: str) -> tuple[str, ...]:
    """The command that starts a judge."""
    try:
        return prepare(name).command
    except JudgeUnavailable as missing:
        pytest.skip(str(missing))


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def test_options_of_pypaimon() -> None:
    """No key of pypaimon passes as a property of the user's own."""
    keys = json.loads(output(ready("pypaimon")[0], "-c", PYTHON_KEYS))
    assert len(keys) > 100
    assert [key for key in keys if find_option(key) is None] == []


def test_options_of_paimon_java(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No key of Paimon itself does."""
    command = ready("java")
    classes = command[command.index("-cp") + 1]
    source = tmp_path_factory.mktemp("keys") / "OptionKeys.java"
    source.write_text(JAVA_KEYS)
    names = ("org.apache.paimon.CoreOptions", "org.apache.paimon.iceberg.IcebergOptions")
    keys = output("java", "-cp", classes, str(source), *names).split()
    assert len(keys) > 150
    assert [key for key in keys if find_option(key) is None] == []
