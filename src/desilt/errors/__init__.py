"""Every error desilt raises on purpose, cut by what the caller does next.

    DesiltError
    ├── BadRequest          mend the request and ask again                (exit 2)
    │   ├── InvalidName     a repository, branch or tag name
    │   ├── InvalidPath     a path that nobody may write to
    │   ├── InvalidRef      a ref expression that cannot be parsed
    │   └── InvalidUri      where a lake, a database or objects are said to be
    ├── NotFound            what was named is not there                   (exit 1)
    ├── Gone                it was there, and a run removed it            (exit 1)
    │   └── CommitGone      a commit that no ref reached any more
    ├── Conflict            the state forbids it: look, then decide       (exit 1)
    │   ├── AlreadyExists
    │   ├── Dirty           uncommitted changes are in the way
    │   ├── NothingToCommit
    │   ├── BranchMoved     somebody else was faster; try again
    │   ├── BadTicket       altered, foreign, used or expired: ask for a new one
    │   ├── BaseAbandoned   where two histories met is no longer part of them
    │   ├── BeingCollected  a run is removing a file that a new commit needs; try again later
    │   ├── WrongClock      this clock disagrees with the store's or with history
    │   └── MergeConflict   both sides changed the same paths
    ├── Unreadable          stored data is not what it must be            (exit 1)
    │   ├── CorruptTable    a range or metarange
    │   │   └── MissingTable    its file is not there
    │   ├── JournalBroken   a record of a move is missing beside the objects
    │   └── NewerSchema     a database of a later desilt
    ├── StorageFailed       the disk, database or bucket said no          (exit 1)
    ├── Refused             a guard said no, and nothing was removed      (exit 10)
    │   ├── StalePlan       plan again
    │   ├── StaleInventory  take a newer one
    │   ├── OtherPolicy     the plan was made for something else
    │   ├── OutgrownPolicy  the repository has changed under its policy
    │   ├── StagedLost      a staged copy that kept it may be lost with a database
    │   ├── TooMuch         a larger share than --max-share
    │   │   └── Shrinks         of the most there was within 30 days
    │   ├── TooMany         more objects than --max-objects
    │   ├── NothingHeld     no address is held by anything
    │   ├── FirstRun        look at the plan, then --confirm
    │   ├── WentBack        the database knows less than the store: it was restored
    │   ├── WrongTime       clocks disagree, or ran backwards
    │   └── OutsidePrefix   an address that is not an object of this repository
    └── Locked              another run is at work                        (exit 11)
        └── FencedOff       another run took over from this one

A message is one line: the thing by name, the fact, and the way out.
"""

from desilt.errors.base import (
    BadRequest,
    CommitGone,
    CorruptTable,
    DesiltError,
    Gone,
    InvalidName,
    InvalidPath,
    InvalidRef,
    InvalidUri,
    JournalBroken,
    MissingTable,
    NewerSchema,
    NotFound,
    StorageFailed,
    Unreadable,
)
from desilt.errors.conflicts import (
    AlreadyExists,
    BadTicket,
    BaseAbandoned,
    BeingCollected,
    BranchMoved,
    Conflict,
    Dirty,
    MergeConflict,
    NothingToCommit,
    WrongClock,
)
from desilt.errors.refusals import (
    FencedOff,
    FirstRun,
    Locked,
    NothingHeld,
    OtherPolicy,
    OutgrownPolicy,
    OutsidePrefix,
    Refused,
    Shrinks,
    StagedLost,
    StaleInventory,
    StalePlan,
    TooMany,
    TooMuch,
    WentBack,
    WrongTime,
    span,
)

__all__ = [
    "AlreadyExists",
    "BadRequest",
    "BadTicket",
    "BaseAbandoned",
    "BeingCollected",
    "BranchMoved",
    "CommitGone",
    "Conflict",
    "CorruptTable",
    "DesiltError",
    "Dirty",
    "FencedOff",
    "FirstRun",
    "Gone",
    "InvalidName",
    "InvalidPath",
    "InvalidRef",
    "InvalidUri",
    "JournalBroken",
    "Locked",
    "MergeConflict",
    "MissingTable",
    "NewerSchema",
    "NotFound",
    "NothingHeld",
    "NothingToCommit",
    "OtherPolicy",
    "OutgrownPolicy",
    "OutsidePrefix",
    "Refused",
    "Shrinks",
    "StagedLost",
    "StaleInventory",
    "StalePlan",
    "StorageFailed",
    "TooMany",
    "TooMuch",
    "Unreadable",
    "WentBack",
    "WrongClock",
    "WrongTime",
    "span",
]
