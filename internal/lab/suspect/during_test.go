package suspect

import (
	"testing"
	"time"

	"orrery/internal/lab/probe"
	"orrery/internal/lab/test"
)

// quiet returns seconds of a host with two processors, on which a test in a node used one of them,
// with equal user and system time.
func quiet() []probe.Second {
	s := probe.Second{
		Took: 1, CPU: probe.Times{User: 0.52, System: 0.52, SoftIRQ: 0.2, Idle: 0.76},
		Self:    probe.Usage{User: 0.01, System: 0.01},
		Cgroups: map[string]probe.Usage{"veth": {User: 0.5, System: 0.5}},
		Net: []probe.Link{{Name: "veth1", Received: probe.Traffic{Bytes: 1e9}, Sent: probe.Traffic{Bytes: 1e6}},
			{Name: "eno1", Sent: probe.Traffic{Bytes: 1e5}}},
	}
	return []probe.Second{s, s, s}
}

func TestDuring(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(s []probe.Second)
		context Context
		label   string
		why     string
	}{
		"quiet":    {func([]probe.Second) {}, Context{Kind: "cpu"}, "", ""},
		"a little": {func(s []probe.Second) { s[0].CPU.Steal = 0.01 }, Context{Kind: "cpu"}, "", ""},
		"steal":    {func(s []probe.Second) { s[0].CPU.Steal = 0.3 }, Context{Kind: "cpu"}, Steal, "4.8 %"},
		"swap":     {func(s []probe.Second) { s[1].Swap.Out = 7 }, Context{Kind: "micro"}, Swap, "7 pages were swapped out"},
		"heat":     {func(s []probe.Second) { s[1].Throttled = 2 }, Context{Kind: "micro"}, Heat, "2 times"},
		"memory": {func(s []probe.Second) { s[1].Stalls.Memory.Some = 0.6 }, Context{Kind: "disk"}, Stall,
			"memory for 20 %"},
		"disk": {func(s []probe.Second) { s[1].Stalls.IO.Some = 0.6 }, Context{Kind: "net"}, Stall,
			"disk for 20 %"},
		"disk, of disk": {func(s []probe.Second) { s[1].Stalls.IO.Some = 0.6 }, Context{Kind: "disk"}, "", ""},
		"another's user time": {
			func(s []probe.Second) { s[0].CPU.User, s[0].CPU.Idle = 1.28, 0 }, Context{Kind: "net"}, Load,
			"0.26 of the 2 processors",
		},
		"the kernel's, for packets": {func(s []probe.Second) { s[0].CPU.System, s[0].CPU.Idle = 1.28, 0 },
			Context{Kind: "net"}, "", ""},
		"another's system time": {func(s []probe.Second) { s[0].CPU.System, s[0].CPU.Idle = 1.28, 0 },
			Context{Kind: "cpu"}, Load, "0.27"},
		"what the idle host takes": {
			func(s []probe.Second) { s[0].CPU.User, s[0].CPU.Idle = 1.28, 0 },
			Context{Kind: "cpu", Baseline: probe.CPU{Busy: 15 * time.Second, Total: 100 * time.Second}}, "", "",
		},
		"bare, reaped at the end": {
			func(s []probe.Second) {
				for i := range s {
					s[i].Cgroups = nil
				}
				s[2].Children = probe.Usage{User: 1.5, System: 1.5}
			}, Context{Kind: "cpu"}, "", "",
		},
		"in a node, reaped at the end": {
			func(s []probe.Second) {
				s[2].Children = probe.Usage{User: 1.5, System: 1.5}
				s[0].CPU.User, s[0].CPU.Idle = 1.28, 0
			}, Context{Kind: "cpu"}, Load, "0.27",
		},
		"past memory": {
			func(s []probe.Second) {
				s[0].Disks = []probe.Disk{{Name: "vda", ReadBytes: 1000e6, WrittenBytes: 300e6}}
			},
			Context{Kind: "disk", Moved: test.Moved{Read: 1050e6, Written: 300e6}}, "", "",
		},
		"from memory": {
			func(s []probe.Second) {
				s[0].Disks = []probe.Disk{{Name: "vda", ReadBytes: 2.2e6, WrittenBytes: 300e6}}
			},
			Context{Kind: "disk", Moved: test.Moved{Read: 7468e6, Written: 300e6}}, PageCache,
			"read 7468 MB, and all disks of the host 2 MB",
		},
		"too little to say": {func([]probe.Second) {}, Context{Kind: "disk", Moved: test.Moved{Read: 1e6}}, "", ""},
		"the way": {func([]probe.Second) {},
			Context{Kind: "net", Links: []string{"orb1", "veth1"}, Bytes: 3e9}, "", ""},
		"another way": {func([]probe.Second) {}, Context{Kind: "net", Links: []string{"eno1"}, Bytes: 3e9}, Path,
			"through eno1, but 3003000000 through veth1"},
		"another way, untold": {func([]probe.Second) {}, Context{Kind: "mpi", Links: []string{"eno1", "none"}}, Path,
			"veth1"},
		"no way at all": {func([]probe.Second) {}, Context{Kind: "capture", Links: []string{"none"}}, Path,
			"0 bytes went through none"},
		"another way, of a disk": {func([]probe.Second) {}, Context{Kind: "disk", Links: []string{"eno1"}}, "", ""},
		"others' traffic, too": {func([]probe.Second) {}, Context{Kind: "net", Links: []string{"eno1"}, Bytes: 3e5}, "",
			""},
		"no traffic": {
			func(s []probe.Second) {
				for i := range s {
					s[i].Net = s[i].Net[1:]
				}
			}, Context{Kind: "net", Links: []string{"none"}}, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet()
			c.change(s)
			labels := During(s, c.context)
			if c.label == "" {
				if len(labels) > 0 {
					t.Errorf("%+v", labels)
				}
				return
			}
			expectLabel(t, labels, c.label, c.why, "")
			if labels[0].Cure == "" {
				t.Error("no cure")
			}
		})
	}
	if l := During(nil, Context{Kind: "net", Links: []string{"eno1"}}); len(l) > 0 {
		t.Errorf("of no seconds: %+v", l)
	}
}

func TestBusy(t *testing.T) {
	base := probe.CPU{Busy: 12 * time.Second, Total: 100 * time.Second}
	if !Busy(base) {
		t.Errorf("%+v is idle", base)
	}
	if base.Busy = 4 * time.Second; Busy(base) {
		t.Errorf("%+v is busy", base)
	}
}
