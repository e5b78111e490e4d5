"""Every error desilt raises on purpose, cut by what the caller does next.

    DesiltError
    ├── BadRequest              mend the request and ask again                (exit 2)
    │   ├── InvalidName         a repository, branch or tag name
    │   ├── InvalidPath         a path that nobody may write to
    │   ├── InvalidRef          a ref expression that cannot be parsed
    │   └── InvalidUri          where a lake, a database or objects are said to be
    ├── NotFound                what was named is not there                   (exit 1)
    ├── Gone                    it was there, and a run removed it            (exit 1)
    │   └── CommitGone          a commit that no ref reached any more
    ├── Conflict                the state forbids it: look, then decide       (exit 1)
    │   ├── AlreadyExists       choose another name
    │   ├── Dirty               uncommitted changes are in the way
    │   ├── NothingToCommit     no change is staged
    │   ├── BranchMoved         somebody else was faster; try again
    │   ├── RefsMoved           others are at it all the time; try again
    │   ├── BadTicket           altered, foreign, used or expired: ask for a new one
    │   ├── BaseAbandoned       where two histories met is no longer part of them
    │   ├── BeingCollected      a run is removing a file that a new commit needs; try again later
    │   ├── WrongClock          nothing is committed or uploaded by this clock: another, or history, contradicts it
    │   └── MergeConflict       both sides changed the same paths
    ├── Unreadable              stored data is not what it must be            (exit 1)
    │   ├── Damaged             a file, by name
    │   │   ├── CorruptTable    a range or metarange: restore it from a copy
    │   │   │   └── MissingTable    its file is not there
    │   │   ├── DamagedAsset    a file of an Icechunk repository: restore it from a copy
    │   │   │   ├── MissingAsset    it is not there
    │   │   │   └── UnknownAsset    of a version or a kind that is not known: upgrade desilt
    │   │   ├── DamagedInventory    one that was supplied: take another
    │   │   ├── DamagedRun      a file of a run: plan again
    │   │   ├── DamagedWatermark    where the last run ended: pass --full
    │   │   └── NotReadBack     a cache, or what a run has just written: run again
    │   ├── Dangling            files that are needed are not listed: look with fsck
    │   ├── Malformed           bytes of a table whose name is not known (in desilt.sstable)
    │   ├── JournalBroken       a record of a move is missing beside the objects
    │   └── NewerSchema         a database of a later desilt
    ├── StorageFailed           the disk, database or bucket said no          (exit 1)
    ├── ServerFailed            a lakeFS server said no, or nothing that counts (exit 1)
    │   ├── WrongKeys           it does not know them
    │   ├── MissingRight        it knows them, and they may not
    │   └── ServerTooOld        it does not know what it was asked
    ├── WorkFailed              a worker or an executor did: the same again   (exit 1)
    ├── WorkersDiffer           Spark's workers have another desilt, or none  (exit 1)
    ├── Refused                 a guard said no, and nothing was removed      (exit 10)
    │   ├── StalePlan           plan again
    │   ├── StaleInventory      take a newer one
    │   ├── PlanOutdated        the plan was made for something else: plan again
    │   │   ├── OtherRepository     another repository
    │   │   ├── PolicyReplaced      another policy
    │   │   ├── RecoveredSince      the database as it was before it was recovered
    │   │   ├── HistoryLost         a history that the database no longer has
    │   │   ├── EditedSince         history as it was before an edit
    │   │   ├── NoLongerFits        refs or commits that are no longer so
    │   │   ├── HeldSince           a prefix that somebody ordered to be held since
    │   │   └── RunGivenUp          a run that was cut off, and given up
    │   ├── OutgrownPolicy      the repository has changed under its policy
    │   ├── StagedLost          a staged copy that kept it may be lost with a database
    │   ├── TooFast             hard delete: a larger share of the lake within an hour than its --max-share
    │   ├── TooMuch             a larger share than --max-share
    │   │   └── Shrinks         of the most there was within 30 days
    │   ├── TooMany             more objects than --max-objects
    │   ├── NothingHeld         no address is held by anything
    │   ├── FirstRun            look at the plan, then --confirm
    │   ├── WentBack            the database knows less than the store: it was restored
    │   ├── OtherRecords        another database has the records of a repository elsewhere
    │   ├── RecordsOutdated     an old copy of that database
    │   ├── WrongTime           nothing is removed by this clock: another, or the past, contradicts it
    │   └── OutsidePrefix       an address that is not an object of this repository
    ├── Locked                  another run is at work                        (exit 11)
    │   └── FencedOff           another run took over from this one
    │       └── BatchOver       another try of it has done this part
    └── ReplayFailed            an operation of a scenario (in desilt.testing; exits as that operation does)

A message is one line: the thing by name, the fact, and the way out. Each class has a
``code``, which stays what it is when a class or a message gets a better name.
"""

from desilt.errors.base import (
    BadRequest,
    CommitGone,
    DesiltError,
    Gone,
    InvalidName,
    InvalidPath,
    InvalidRef,
    InvalidUri,
    JournalBroken,
    NewerSchema,
    NotFound,
    StorageFailed,
    Unreadable,
    WorkersDiffer,
    WorkFailed,
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
    RefsMoved,
    WrongClock,
)
from desilt.errors.damaged import (
    CorruptTable,
    Damaged,
    DamagedAsset,
    DamagedInventory,
    DamagedRun,
    DamagedWatermark,
    Dangling,
    MissingAsset,
    MissingTable,
    NotReadBack,
    UnknownAsset,
)
from desilt.errors.outdated import (
    EditedSince,
    HeldSince,
    HistoryLost,
    NoLongerFits,
    OtherRepository,
    PlanOutdated,
    PolicyReplaced,
    RecoveredSince,
    RunGivenUp,
)
from desilt.errors.refusals import (
    BatchOver,
    FencedOff,
    FirstRun,
    Locked,
    NothingHeld,
    OtherRecords,
    OutgrownPolicy,
    OutsidePrefix,
    RecordsOutdated,
    Refused,
    Shrinks,
    StagedLost,
    StaleInventory,
    StalePlan,
    TooFast,
    TooMany,
    TooMuch,
    WentBack,
    WrongTime,
    span,
)
from desilt.errors.server import MissingRight, ServerFailed, ServerTooOld, WrongKeys

__all__ = [
    "AlreadyExists",
    "BadRequest",
    "BadTicket",
    "BaseAbandoned",
    "BatchOver",
    "BeingCollected",
    "BranchMoved",
    "CommitGone",
    "Conflict",
    "CorruptTable",
    "Damaged",
    "DamagedAsset",
    "DamagedInventory",
    "DamagedRun",
    "DamagedWatermark",
    "Dangling",
    "DesiltError",
    "Dirty",
    "EditedSince",
    "FencedOff",
    "FirstRun",
    "Gone",
    "HeldSince",
    "HistoryLost",
    "InvalidName",
    "InvalidPath",
    "InvalidRef",
    "InvalidUri",
    "JournalBroken",
    "Locked",
    "MergeConflict",
    "MissingAsset",
    "MissingRight",
    "MissingTable",
    "NewerSchema",
    "NoLongerFits",
    "NotFound",
    "NotReadBack",
    "NothingHeld",
    "NothingToCommit",
    "OtherRecords",
    "OtherRepository",
    "OutgrownPolicy",
    "OutsidePrefix",
    "PlanOutdated",
    "PolicyReplaced",
    "RecordsOutdated",
    "RecoveredSince",
    "RefsMoved",
    "Refused",
    "RunGivenUp",
    "ServerFailed",
    "ServerTooOld",
    "Shrinks",
    "StagedLost",
    "StaleInventory",
    "StalePlan",
    "StorageFailed",
    "TooFast",
    "TooMany",
    "TooMuch",
    "UnknownAsset",
    "Unreadable",
    "WentBack",
    "WorkFailed",
    "WorkersDiffer",
    "WrongClock",
    "WrongKeys",
    "WrongTime",
    "span",
]
