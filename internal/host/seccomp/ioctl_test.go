package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestHostsEnd checks that requests that change the host's end of a tap are denied, and all calls
// of other abis.
func TestHostsEnd(t *testing.T) {
	const allow = unix.SECCOMP_RET_ALLOW
	filter, own := tapIoctlFilter(), abis[0].arch
	for name, c := range map[string]struct {
		arch, call, request, want uint32
	}{
		"read":                {own, unix.SYS_READ, unix.TUNSETPERSIST, allow},
		"TUNSETPERSIST":       {own, unix.SYS_IOCTL, unix.TUNSETPERSIST, errno(unix.EPERM)},
		"TUNSETOWNER":         {own, unix.SYS_IOCTL, unix.TUNSETOWNER, errno(unix.EPERM)},
		"SIOCSIFHWADDR":       {own, unix.SYS_IOCTL, unix.SIOCSIFHWADDR, errno(unix.EPERM)},
		"TUNGETDEVNETNS":      {own, unix.SYS_IOCTL, unix.TUNGETDEVNETNS, errno(unix.EPERM)},
		"TUNSETVNETHDRSZ":     {own, unix.SYS_IOCTL, unix.TUNSETVNETHDRSZ, allow},
		"TUNSETOFFLOAD":       {own, unix.SYS_IOCTL, unix.TUNSETOFFLOAD, allow},
		"TUNSETQUEUE":         {own, unix.SYS_IOCTL, unix.TUNSETQUEUE, allow},
		"TUNSETSNDBUF":        {own, unix.SYS_IOCTL, unix.TUNSETSNDBUF, allow},
		"KVM_RUN":             {own, unix.SYS_IOCTL, 0xae80, allow},
		"of another abi":      {abis[1].arch, 54, unix.TUNGETIFF, errno(unix.ENOSYS)},
		"of x32":              {own, 514 | x32, unix.TUNSETPERSIST, errno(unix.ENOSYS)},
		"of no known machine": {1, unix.SYS_READ, 0, errno(unix.ENOSYS)},
	} {
		if got := answer(t, filter, c.arch, c.call, 0, c.request); got != c.want {
			t.Errorf("%s: %#x instead of %#x", name, got, c.want)
		}
	}
}
