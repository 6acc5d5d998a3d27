"""What was set up before a look: the folder it is taken in, and the environment."""

import re
import shlex
from dataclasses import replace
from typing import Final

from policies.loops.aim import Aim, NotAWaitError
from policies.loops.record import record
from policies.loops.tree import Simple
from policies.loops.words import Scope, fixed

_BARE: Final = re.compile(r"-[LPe@]*[LPe@]|--")


@record
class Around:
    """Where a look is taken.

    Attributes:
        folder: gone to, empty for none, None for one that only the shell knows.
        exports: assignments for its tools, None where only the shell knows one.
    """

    folder: str | None = ""
    exports: tuple[str, ...] | None = ()

    def gone_to(self, node: Simple, scope: Scope) -> "Around":
        """Return what is around after a `cd` or the like."""
        words = [word for word in node.words[1:] if not _BARE.fullmatch(word.raw)]
        to = fixed(words[0], scope) if len(words) == 1 else None
        plain = to is not None and not re.match(r"[-+~]|$", to)
        home = to is not None and words[0].raw.startswith("~/")
        bare = node.words[0].raw != "popd" and (plain or home)
        if not bare or to is None or words[0].globs:
            return replace(self, folder=None)
        return replace(self, folder=_joined(self.folder, to))

    def exporting(self, name: str, value: str | None) -> "Around":
        """Return what is around once a variable is in the environment."""
        if self.exports is None or value is None:
            return replace(self, exports=None)
        others = [item for item in self.exports if not item.startswith(f"{name}=")]
        return replace(self, exports=(*others, f"{name}={shlex.quote(value)}"))

    def with_assigned(self, node: Simple, scope: Scope) -> "Around":
        """Return what is around a command behind `NAME=value`."""
        around = self
        for name, word in node.assignments if node.words else ():
            around = around.exporting(name, fixed(word, scope))
        return around

    def placed(self, aim: Aim) -> Aim:
        """Return an aim whose file is found from anywhere.

        Raises:
            NotAWaitError: only the shell knows where it is.
        """
        place = 1 if aim.words[0] == "--pidfile" else 0
        if aim.kind not in {"file", "lock", "log"} and not place:
            return aim
        words = list(aim.words)
        words[place] = self._path(words[place])
        return replace(aim, words=tuple(words))

    def _path(self, shown: str) -> str:
        text = shown if shown.startswith('"') else "".join(shlex.split(shown))
        if shown.startswith(('"/', "/", "'/", "~/")):
            return shown
        if self.folder == "":
            return quoted(f"./{text}") if text.startswith("-") else shown
        if self.folder is None or shown.startswith('"'):
            raise NotAWaitError
        return quoted(_joined(self.folder, text) or text)

    def sets_up(self) -> bool:
        """Say whether a command needs anything before it.

        Raises:
            NotAWaitError: only the shell knows what.
        """
        if self.folder is None or self.exports is None:
            raise NotAWaitError
        return bool(self.folder or self.exports)

    def command(self, text: str, *, simple: bool) -> str:
        """Return the text of a command for a shell elsewhere.

        Args:
            simple: it is one command that has to succeed.
        """
        if not self.sets_up():
            return text
        text = text if simple else f"{{ {text}; }}"
        going = [f"cd {quoted(self.folder)}"] if self.folder else []
        exports = [f"export {' '.join(self.exports)}"] if self.exports else []
        return " && ".join([*going, *exports, text])


HERE: Final = Around()
UNKNOWN: Final = Around(folder=None, exports=None)


def quoted(path: str) -> str:
    """Return a path for a shell; a home at its start is left to the shell."""
    if path.startswith("~/"):
        return "~/" + shlex.quote(path[2:])
    return shlex.quote(path)


def _joined(folder: str | None, path: str) -> str | None:
    if path.startswith(("/", "~/")):
        return path
    if folder is None:
        return None
    path = path.removeprefix("./")
    return f"{folder.rstrip('/')}/{path}" if folder else path
