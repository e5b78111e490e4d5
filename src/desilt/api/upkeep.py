"""What a repository does about its past, in one document."""

from collections.abc import Iterable, Sequence

from desilt.api.calls import fitting
from desilt.api.words import flag_of, text_of
from desilt.api.workplace import Workplace
from desilt.errors import BadRequest
from desilt.runs.upkeep import UpkeepReport
from desilt.upkeep import kept
from desilt.upkeep.chain import Chain
from desilt.upkeep.document import Upkeep, UpkeepLike, upkeep_of


class UpkeepFace:
    """One document for all jobs, and one call that does what is due."""

    def __init__(self, place: Workplace) -> None:
        self._place = place

    @fitting
    def set(self, document: UpkeepLike, *, confirm: bool = False) -> Upkeep:
        """Let later runs go by ``document`` (a mapping, a path, a text); with ``confirm``, whatever lint wants."""
        repository, wanted = self._place.repository, upkeep_of(document)
        found = kept.findings(repository, wanted)
        kept.agree(found, confirm=flag_of("confirm", confirm))
        return kept.keep(repository, wanted, found).upkeep

    @fitting
    def get(self) -> Upkeep:
        """What runs go by."""
        return kept.kept(self._place.repository).upkeep

    @fitting
    def plan(self, document: UpkeepLike | None = None) -> UpkeepReport:
        """What each step that is due would do, by ``document`` or by what is set; remove nothing."""
        return self._chain(document, sweeps=False)()

    @fitting
    def run(
        self, document: UpkeepLike | None = None, *, confirm: Sequence[str] = (), clock_is_right: bool = False
    ) -> UpkeepReport:
        """Do what is due; ``confirm`` names the steps whose plans somebody has seen, or ``"all"``.

        What is refused is told in the report, with an exit code; nothing is raised for it.
        """
        chain = self._chain(document, sweeps=True)
        if (
            isinstance(confirm, str)
            or not isinstance(confirm, Iterable)
            or not all(isinstance(one, str) for one in confirm)
        ):
            raise BadRequest(f"'confirm' is {confirm!r}; give the names of steps, such as ['gc'], or ['all']")
        chain.confirm = [text_of("confirm", one) or "" for one in confirm]
        chain.clock_is_right = flag_of("clock_is_right", clock_is_right)
        return chain()

    def _chain(self, document: UpkeepLike | None, *, sweeps: bool) -> Chain:
        repository, executor = self._place.repository, self._place.executor
        if document is None:
            return Chain(repository, executor, kept.kept(repository).upkeep, sweeps)
        wanted = upkeep_of(document)
        kept.agree(kept.findings(repository, wanted), confirm=True)
        return Chain(repository, executor, wanted, sweeps, given=True)

    def __repr__(self) -> str:
        return f"<upkeep of {self._place.opened.repository.name!r}>"
