package host

import "golang.org/x/sys/unix"

// LimitCount is how many resource limits a process has (getrlimit(2)).
const LimitCount = unix.RLIMIT_RTTIME + 1

// softFiles is how many files a program may open until it asks for more. It is what systemd gives
// to services: programs that use select(2) fail above, and some close all that they might have
// open.
const softFiles = 1024

// Limits returns the resource limits that nodes begin with, by number: those of the first process
// of this host, and not the caller's, which a node would keep for all its life. Root without
// CAP_SYS_RESOURCE, as in a container, can give no more than it has.
func Limits() [LimitCount]unix.Rlimit {
	var all [LimitCount]unix.Rlimit
	raises := mayRaise()
	for number := range all {
		var own unix.Rlimit
		_ = unix.Getrlimit(number, &own) // which cannot fail for a number that there is
		if err := unix.Prlimit(1, number, nil, &all[number]); err != nil {
			all[number] = own
		}
		if !raises {
			all[number].Max = min(all[number].Max, own.Max)
		}
		all[number].Cur = min(all[number].Cur, all[number].Max)
	}
	all[unix.RLIMIT_NOFILE].Cur = min(softFiles, all[unix.RLIMIT_NOFILE].Max)
	return all
}

// mayRaise reports whether this process may raise limits.
func mayRaise() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	return unix.Capget(&header, &caps[0]) == nil && caps[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
