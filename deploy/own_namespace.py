"""A program that starts itself again, in a namespace of its own."""

import os
import sys

INSIDE = "LOCKSTEP_INSIDE_NAMESPACE"


def unshare(kind):
    """What to put before a command; `kind` is "--mount" or "--net". Takes root or user namespaces."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, kind]


def enter(kind):
    """Does nothing when this program is inside already; else it does not return."""
    if os.environ.get(INSIDE) == kind:
        return
    command = [*unshare(kind), sys.executable, *sys.argv]
    os.execvpe(command[0], command, {**os.environ, INSIDE: kind})
