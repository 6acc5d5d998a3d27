"""Looks at what is on a host, as an engine takes them."""

from collections.abc import Sequence
from typing import Any

from policies.model import Memory, Observation
from tests.fakes import START, FakeHost, FakeHosts
from watcher.conditions import Condition, Look, Place
from watcher.config import Config
from watcher.targets import condition_of


class Far:
    """A condition on a host that is this machine; looks hand their memory on."""

    def __init__(self, words: str | Sequence[str], host: FakeHost) -> None:
        place = Place(config=Config(), cwd="/cwd", launcher=0, hosts=FakeHosts(host))
        self.host = host
        self.condition: Condition = condition_of(words, place)
        self.memory: Memory = {}

    async def take(self) -> Observation:
        looker = self.condition.looker()
        assert looker is not None
        (seen,) = await looker.take([Look(self.condition, self.memory)], START)
        assert seen is not None
        self.memory = seen.memory
        return seen

    def request(self) -> dict[str, Any]:
        """Return the one request of the latest look."""
        ((request,),) = self.host.asked[-1:]
        return dict(request)
