package probe

import "golang.org/x/sys/unix"

// own reads the processor time of the lab's process and its children.
type own struct {
	self, children unix.Rusage
	counted        bool
}

func (o *own) sample(s *Second) {
	var self, children unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &self) != nil || unix.Getrusage(unix.RUSAGE_CHILDREN, &children) != nil {
		return
	}
	if o.counted {
		s.Self, s.Children = spentSince(self, o.self), spentSince(children, o.children)
	}
	o.self, o.children, o.counted = self, children, true
}

func spentSince(now, before unix.Rusage) Usage {
	return Usage{
		nanoseconds(forward(uint64(now.Utime.Nano()), uint64(before.Utime.Nano()))),
		nanoseconds(forward(uint64(now.Stime.Nano()), uint64(before.Stime.Nano()))),
	}
}
