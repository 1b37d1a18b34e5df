package probe

import "golang.org/x/sys/unix"

// ownUsage reads the processor time of the lab's process and its children.
type ownUsage struct {
	self, children unix.Rusage
	counted        bool
}

func (o *ownUsage) sample(s *Second) {
	var self, children unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &self) != nil || unix.Getrusage(unix.RUSAGE_CHILDREN, &children) != nil {
		return
	}
	if o.counted {
		s.Self, s.Children = usageSince(self, o.self), usageSince(children, o.children)
	}
	o.self, o.children, o.counted = self, children, true
}

func usageSince(now, before unix.Rusage) Usage {
	return Usage{
		nanoseconds(clockIncrease(uint64(now.Utime.Nano()), uint64(before.Utime.Nano()))),
		nanoseconds(clockIncrease(uint64(now.Stime.Nano()), uint64(before.Stime.Nano()))),
	}
}
