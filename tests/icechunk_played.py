"""What people do to an Icechunk repository, step by step, and what it should have by then."""

import numpy as np
from hypothesis import strategies as st

ARRAYS = ("a", "b", "c")


def steps(names, **size):
    """Lives of a repository with branches of such names beside main."""
    branch = st.sampled_from(("main", *names))
    some = st.one_of(
        st.tuples(st.just("commit"), branch, st.sampled_from(ARRAYS), st.lists(st.integers(1, 4), max_size=3)),
        st.tuples(st.just("branch"), st.sampled_from(names), branch),
        st.tuples(st.just("drop"), st.sampled_from(names)),
        st.tuples(st.just("tag"), st.integers(0, 9), branch),
        st.tuples(st.just("untag"), st.integers(0, 9)),
        st.tuples(st.just("reset"), branch, st.integers(0, 5)),
        st.tuples(st.just("remove"), branch, st.sampled_from(ARRAYS)),
        st.tuples(st.just("virtual"), branch, st.integers(1, 3)),
    )
    return st.lists(some, **size)


class Played:
    """A repository, and what it should have: the library loses odd names of format 1 from its lists."""

    def __init__(self, world):
        self.world, self.branches, self.tags, self.deleted, self.made = world, {}, {}, set(), 0
        self.branches["main"] = world.repo.lookup_branch("main")

    def play(self, step, *words):
        getattr(self, step)(*words)

    def commit(self, name, array, shape):
        if name in self.branches:
            self.made += 1
            values = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape) + self.made
            self.branches[name] = self.world.commit(f"{self.made}", branch=name, **{array: values})

    def virtual(self, name, count):
        if name in self.branches:
            self.branches[name] = self.world.virtual("v", count, branch=name)

    def remove(self, name, array):
        if name in self.branches:
            self.branches[name] = self.world.remove(array, branch=name) or self.branches[name]

    def branch(self, name, source):
        if name not in self.branches and source in self.branches:
            self.world.repo.create_branch(name, self.branches[source])
            self.branches[name] = self.branches[source]

    def drop(self, name):
        if self.branches.pop(name, None):
            self.world.repo.delete_branch(name)

    def tag(self, number, source):
        name = f"v{number}"
        if name not in self.tags and name not in self.deleted and source in self.branches:
            self.world.repo.create_tag(name, self.branches[source])
            self.tags[name] = self.branches[source]

    def untag(self, number):
        if self.tags.pop(f"v{number}", None):
            self.world.repo.delete_tag(f"v{number}")
            self.deleted.add(f"v{number}")

    def reset(self, name, back):
        if name in self.branches:
            line = self.world.ancestry(self.branches[name])
            self.branches[name] = line[min(back, len(line) - 1)][0]
            self.world.repo.reset_branch(name, self.branches[name])
