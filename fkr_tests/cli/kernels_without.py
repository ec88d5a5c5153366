"""A process whose kernel seems to lack some calls: a filter of seccomp answers ENOSYS to them."""
import ctypes
import platform
import struct

LANDLOCK = 444  # landlock_create_ruleset
SECCOMP = {"x86_64": 317, "aarch64": 277}.get(platform.machine())
NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2


def without(*calls):
    """For preexec_fn: a kernel that lacks these calls."""
    # sock_filter: load the call's number; ENOSYS for each of `calls`; allow
    code = [(0x20, 0, 0, 0)]
    for call in calls:
        code += [(0x15, 0, 1, call), (0x06, 0, 0, 0x00050000 | 38)]
    code.append((0x06, 0, 0, 0x7FFF0000))
    text = b"".join(struct.pack("<HBBI", *each) for each in code)
    libc = ctypes.CDLL(None, use_errno=True)

    def enter():
        buffer = ctypes.create_string_buffer(text)
        program = struct.pack("@HxxxxxxP", len(code), ctypes.addressof(buffer))
        assert libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        assert libc.prctl(SET_SECCOMP, FILTER, program, 0, 0) == 0

    return enter
