"""A walk over the words of a statement, for everything that is no query or expression.

Keywords are plain words here: whether `tag` is a keyword or a name depends on where it stands, and `PRIMARY KEY` is two
words. What goes wrong is said with line, column and the line itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NoReturn, TypeVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from lakebed.errors import InvalidArgument
from lakebed.sql.words.secrets import MASK, is_within_secret, without_secrets

T = TypeVar("T")


class Words(Spark.Tokenizer):  # type: ignore[misc]
    """Splits text into words, quoted names, texts, numbers and signs."""

    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        text: token for text, token in Spark.Tokenizer.KEYWORDS.items() if not text[0].isalpha()
    }
    SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
        text: token for text, token in Spark.Tokenizer.SINGLE_TOKENS.items() if text != "$"
    }
    STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
    VAR_SINGLE_TOKENS: ClassVar[set[str]] = {"$"}
    TOKENS_PRECEDING_HINT: ClassVar[set[TokenType]] = set(TokenType)


_END = Token(TokenType.UNKNOWN, "")


def tokens_of(text: str) -> list[Token]:
    """The words of a text."""
    try:
        return list(Words(dialect=Spark).tokenize(text))
    except TokenError as error:
        raise InvalidArgument(
            "the SQL text can not be split into words: it ends inside of quotes or a comment",
            hint="look for a quote or a comment that is not closed",
        ) from error


class Cursor:
    """Reads one statement word by word."""

    def __init__(self, text: str, tokens: list[Token] | None = None) -> None:
        self.text = text
        self.tokens = tokens_of(text) if tokens is None else tokens
        self.index = 0

    # --- looking -------------------------------------------------------------------------------------------------

    @property
    def current(self) -> Token:
        """The next word; an empty one at the end."""
        return self.tokens[self.index] if self.index < len(self.tokens) else _END

    @property
    def is_done(self) -> bool:
        """Whether everything is read."""
        return self.index >= len(self.tokens)

    def sees(self, *words: str) -> bool:
        """Whether these words or signs are next. Quoted names and texts are no words."""
        ahead = self.tokens[self.index : self.index + len(words)]
        return len(ahead) == len(words) and all(
            token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING) and token.text.upper() == word
            for token, word in zip(ahead, words, strict=True)
        )

    def sees_any(self, *words: str) -> bool:
        """Whether one of these words is next."""
        return any(self.sees(word) for word in words)

    # --- taking --------------------------------------------------------------------------------------------------

    def take(self) -> Token:
        """The next word, whatever it is."""
        if self.is_done:
            self.fail("the statement ends too early")
        self.index += 1
        return self.tokens[self.index - 1]

    def accept(self, *words: str) -> bool:
        """Reads these words if they are next."""
        if not self.sees(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Reads these words, or fails."""
        if not self.accept(*words):
            self.fail(f"expected {' '.join(words)}")

    def end(self) -> None:
        """Fails unless everything is read."""
        if not self.is_done:
            self.fail("this is not expected here")

    def name(self, what: str = "a name") -> str:
        """A name, quoted or not."""
        token = self.current
        if token.token_type != TokenType.IDENTIFIER and not _is_word(token):
            self.fail(f"expected {what}")
        return str(self.take().text)

    def path(self, what: str = "a name") -> tuple[str, ...]:
        """Names with dots between them."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        return tuple(parts)

    def string(self, what: str = "a text in quotes") -> str:
        """A text in quotes."""
        if self.current.token_type != TokenType.STRING:
            self.fail(f"expected {what}")
        return str(self.take().text)

    def integer(self, what: str = "a number") -> int:
        """A whole number."""
        if self.current.token_type != TokenType.NUMBER or not self.current.text.isdigit():
            self.fail(f"expected {what}")
        return int(self.take().text)

    def listed(self, item: Callable[[], T]) -> list[T]:
        """`(item, item, ...)`."""
        self.expect("(")
        found = [item()]
        while self.accept(","):
            found.append(item())
        self.expect(")")
        return found

    def text_until(self, *stops: str) -> tuple[int, int]:
        """Skips words up to one of the stops outside any brackets and CASE; gives the place of what was skipped."""
        start, depth = self.index, 0
        while not self.is_done:
            text = self.current.text
            if depth == 0 and self.sees_any(*stops):
                break
            is_sign = self.current.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
            if is_sign:
                depth += (text in "([" or text.upper() == "CASE") - (text in ")]" or text.upper() == "END")
            if depth < 0:
                break
            self.index += 1
        if start == self.index:
            self.fail("something is missing here")
        return self.tokens[start].start, self.tokens[self.index - 1].end + 1

    def source(self) -> str:
        """The text of the whole statement."""
        return self.text[self.tokens[0].start : self.tokens[-1].end + 1]

    def rest(self) -> str:
        """The text of all that is left; it counts as read."""
        start = self.current.start if not self.is_done else len(self.text)
        self.index = len(self.tokens)
        return self.text[start : self.tokens[-1].end + 1]

    # --- options -------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, str]:
        """`('key' = 'value', ...)`; keys also as `a.b.c`, values also as numbers and words, `=` optional."""
        if self.accept("(", ")"):
            return {}
        return dict(self.listed(self._option))

    def _option(self) -> tuple[str, str]:
        key = self.option_key()
        self.accept("=")
        return key, self.value()

    def option_key(self) -> str:
        """An option's name, in quotes or as words with dots and dashes."""
        if self.current.token_type == TokenType.STRING:
            return str(self.take().text)
        start = self.current.start
        self.name("an option's name")
        while not self.is_done and (self.sees_any(".", "-") or self._follows_directly()):
            self.take()
        return self.text[start : self.tokens[self.index - 1].end + 1].replace("`", "")

    def _follows_directly(self) -> bool:
        before = self.tokens[self.index - 1]
        return before.text in (".", "-") and before.end + 1 == self.current.start

    def value(self) -> str:
        """An option's value as text."""
        sign = "-" if self.accept("-") else ""
        token = self.current
        if token.token_type not in (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER) and not _is_word(token):
            self.fail("expected a value")
        return f"{sign}{self.take().text}"

    def hint_options(self) -> dict[str, str]:
        """The content of a hint: `OPTIONS('key' = 'value', ...)`."""
        self.expect("OPTIONS")
        found = self.options()
        self.end()
        return found

    # --- failing -------------------------------------------------------------------------------------------------

    def fail(self, message: str) -> NoReturn:
        """Raises with the place where the statement stopped making sense."""
        token = self.current
        position = len(self.text.rstrip()) if token is _END else token.start
        found = "the end" if token is _END else f"`{self.text[token.start : token.end + 1]}`"
        if is_within_secret(self.text, position):
            found = f"`'{MASK}'`"
        raise syntax_error(self.text, position, f"{message}, found {found}")


def syntax_error(text: str, position: int, message: str) -> InvalidArgument:
    """An error that shows the line with a pointer to the place. Passwords in it are not shown."""
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line = text[line_start : len(text) if line_end < 0 else line_end]
    column = position - line_start
    number = text.count("\n", 0, position) + 1
    told = column + 1
    if (shown_line := without_secrets(line)) != line:
        line, column = shown_line, min(len(without_secrets(line[:column])), len(shown_line))
    left = max(0, column - 60)
    shown = line[left : left + 110]
    return InvalidArgument(
        f"SQL syntax, line {number}, column {told}: {message}\n  {shown}\n  {' ' * (column - left)}^",
        hint="correct the statement at the pointer",
    )


_NO_WORDS = (TokenType.STRING, TokenType.NUMBER, TokenType.HINT)


def _is_word(token: Token) -> bool:
    first = token.text[:1]
    return token.token_type not in _NO_WORDS and (first.isalpha() or first in ("_", "$"))
