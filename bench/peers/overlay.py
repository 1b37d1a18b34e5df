"""Overlays for unprivileged containers without changing the owner of any file: every lower tree and the
private upper tree are bind mounts that the kernel maps to the container's ids (idmapped mounts, Linux 5.12)."""

import ctypes
import os
import signal
import struct

IDS = 100000, 65536  # the id of the container's root on the host, and the number of ids

AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442  # the same numbers on every 64-bit architecture
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH = 1, 4
MOUNT_ATTR_IDMAP = 0x100000
CLONE_NEWUSER = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def user_namespace():
    """Returns a file descriptor of a user namespace with the map. The host's root is mapped behind the last id,
    because overlayfs creates its work directory as the host's root."""
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        check(libc.unshare(CLONE_NEWUSER), "unshare")
        os.write(go, b".")
        signal.pause()
    os.read(ready, 1)
    os.close(ready), os.close(go)
    first, count = IDS
    for kind in "uid", "gid":
        with open(f"/proc/{child}/{kind}_map", "w") as file:
            file.write(f"0 {first} {count}\n{count} 0 1\n")
    namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return namespace


def bind_mapped(source, target, namespace):
    tree = check(libc.syscall(OPEN_TREE, AT_FDCWD, source.encode(), OPEN_TREE_CLONE | os.O_CLOEXEC), source)
    attributes = struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, namespace)
    check(libc.syscall(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, len(attributes)), f"idmap of {source}")
    check(libc.syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, target.encode(), MOVE_MOUNT_F_EMPTY_PATH), target)
    os.close(tree)


def mount(lowers, private, target):
    """Mounts an overlay of lowers (mapped already, top first) and private/upper (mapped) on target."""
    options = f"lowerdir={':'.join(lowers)},upperdir={private}/upper,workdir={private}/work"
    check(libc.mount(b"overlay", target.encode(), b"overlay", 0, options.encode()), f"overlay on {target}")


def unmount(target):
    check(libc.umount2(target.encode(), 0), f"umount {target}")
