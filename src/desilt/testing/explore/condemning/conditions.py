"""What the design insists on: each condition can be left out alone, and a history then shows why it is there."""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Conditions:
    """All of them hold in the design; one that is False was left out."""

    # when a branch moves to a commit
    rows_go_with_a_commit: bool = True  # of what it takes from staging
    rows_go_first: bool = True  # before anything is condemned
    rows_go_in_the_same_transaction: bool = True
    newer_areas_shadow_nothing: bool = True  # what the commit takes, it takes, whatever was staged since
    sealed_areas_are_compared: bool = True  # those it was made from are still the oldest of the branch
    settling_compares_areas: bool = True  # and so does whoever carries out a commit that was cut off
    resets_settle_first: bool = True
    # the rule
    sealed_references_count: bool = True
    other_branches_count: bool = True
    judged_at_the_end: bool = True  # of the transaction, and not at each drop
    held_is_spared: bool = True
    # who writes rows
    copies_write_no_row: bool = True
    elsewhere_has_no_row: bool = True
    copies_across_take_the_bytes: bool = True  # so that no address is staged on two branches
    off_takes_all_rows: bool = True
    commits_take_rows_while_off: bool = True
    # what staging checks; some hide each other
    uploads_look_for_tombstones: bool = True
    uploads_look_at_their_ticket: bool = True
    tickets_work_once: bool = True
    copies_look_for_tombstones: bool = True
    copies_compare_what_they_read: bool = True
    # after the rule
    grace_is_waited_for: bool = True
    claims_look_for_holds: bool = True
    claims_run_out: bool = True
    restore_spares_what_is_claimed: bool = True
    restore_writes_a_row: bool = True
    # the complement
    collector_decides_at_once: bool = True
    collector_waits_for_tickets: bool = True

    def without(self, *names: str) -> "Conditions":
        return replace(self, **dict.fromkeys(names, False))

    @staticmethod
    def names() -> list[str]:
        return [one.name for one in fields(Conditions)]


ALL = Conditions()
