"""Commands, from the shell and back."""

from drawing.section import Results, Section, section, table


def commands(results: Results) -> Section:
    """Each command here and on Spark; those that take as long are told in one row."""
    result = results["commands"]
    body = [
        [
            f"`desilt {row['command']}`",
            f"{row['seconds']:.1f} s",
            f"{row['on Spark']:.0f} s" if "on Spark" in row else "",
        ]
        for row in sorted(result["rows"], key=lambda row: float(row["seconds"]))
    ]
    says = "From the shell and back, on the demo's small lake. Most of what a plan takes is loading numpy and Arrow."
    return section("How long commands take", [says, table(["", "here", "on Spark"], body, words=1)], {}, result)
