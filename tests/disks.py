"""Where tests keep their files: in memory where there is room for them, and on a disk what is about disks."""

import os
import shutil
import tempfile

DISK = tempfile.gettempdir()
SHARED = "/dev/shm"
ROOM = 2 * 2**30  # bytes; a run of all tests leaves some hundred megabytes


def quick():
    """A folder for what need not survive a power cut: to wait for a disk proves nothing there."""
    usable = os.access(SHARED, os.W_OK) and shutil.disk_usage(SHARED).free > ROOM
    return SHARED if usable else DISK
