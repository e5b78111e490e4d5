"""An upkeep as one page: what each step would do or did, and what is stored at the end of it."""

from desilt.domain.units import many
from desilt.render.pages import page
from desilt.render.words import told
from desilt.runs.report import Amount
from desilt.runs.upkeep import STOPPED, StepReport, StepState, UpkeepReport

COLOURS = {
    StepState.DONE: "stays",
    StepState.NOTHING: "stays",
    StepState.PLANNED: "goes",
    StepState.PARTLY: "bad",
    StepState.REFUSED: "bad",
    StepState.FAILED: "bad",
}


def render(report: UpkeepReport) -> str:
    """The page of an upkeep."""
    levels = [("Stored before", "held", report.stored), ("Stored at the end", "stays", report.left)]
    if report.trash_left.objects:
        levels.append(("In the trash then", "goes", report.trash_left))
    return page(
        "upkeep.html.j2",
        title=f"{report.repository} · upkeep · {report.run} · {report.now}",
        repository=report.repository,
        version=report.version,
        report=report,
        heading=heading(report),
        kind=kind(report),
        colours=COLOURS,
        levels=levels,
        offers=[(one, *offer(report, one)) for one in report.steps if one.objections or one.state in STOPPED],
        yes=report.command and f"desilt upkeep run {report.argument} {report.command}",
    )


def heading(report: UpkeepReport) -> str:
    """The one thing to say first."""
    stopped = [one for one in report.steps if one.state in STOPPED]
    if report.swept:
        went = told(report.goes) if report.goes.objects else "Nothing"
        rest = f"; {many(len(stopped), 'step')} not done" if stopped else ""
        return f"{went} went{rest}"
    would = told(report.goes + report.freed_later) if (report.goes + report.freed_later).objects else "Nothing"
    refused = [one for one in report.steps if one.objections or one.state in STOPPED]
    return f"{would} would go" + (f"; {many(len(refused), 'step')} would be refused" if refused else "")


def kind(report: UpkeepReport) -> str:
    if any(one.state in (*STOPPED, StepState.PARTLY) for one in report.steps):
        return "failed"
    return "done" if report.swept else "would"


def offer(report: UpkeepReport, step: StepReport) -> tuple[str, str]:
    """What its section must say to be let pass, and else the command that would be; "" where there is none.

    Steps stand on each other: what was planned for one is not swept by itself, if a yes to all of it will do.
    """
    if step.settings is not None:
        return step.settings, ""
    if step.passes is None or not step.run:
        return "", ""
    return "", " ".join(filter(None, ["desilt sweep", report.argument, step.run, step.passes]))


def amount(step: StepReport, *, swept: bool) -> Amount:
    return step.removed if swept else step.planned
