package host

import "golang.org/x/sys/unix"

// LimitCount is how many resource limits a process has (getrlimit(2)).
const LimitCount = unix.RLIMIT_RTTIME + 1

// softFileLimit is the soft limit of open files, which a program may raise. It is the default of
// systemd for services: programs that use select(2) fail above it, and some programs close all
// descriptors up to the limit.
const softFileLimit = 1024

// Limits returns the resource limits for nodes, by number. They are those of the first process of
// this host, not the caller's, which a node would keep for its whole life. Root without
// CAP_SYS_RESOURCE, as in a container, cannot exceed its own limits.
func Limits() [LimitCount]unix.Rlimit {
	var all [LimitCount]unix.Rlimit
	raises := canRaiseLimits()
	for number := range all {
		var own unix.Rlimit
		_ = unix.Getrlimit(number, &own) // it cannot fail for a valid number
		if err := unix.Prlimit(1, number, nil, &all[number]); err != nil {
			all[number] = own
		}
		if !raises {
			all[number].Max = min(all[number].Max, own.Max)
		}
		all[number].Cur = min(all[number].Cur, all[number].Max)
	}
	all[unix.RLIMIT_NOFILE].Cur = min(softFileLimit, all[unix.RLIMIT_NOFILE].Max)
	return all
}

// canRaiseLimits reports whether this process may raise limits.
func canRaiseLimits() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	return unix.Capget(&header, &caps[0]) == nil && caps[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
