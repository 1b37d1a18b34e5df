package micro

import "orrery/internal/lab/test"

// A row is a measurement of orrery-micro and the figure that it becomes.
type row struct {
	name string
	test.Figure
	far      bool
	loopback bool // its packets go through the loopback interface
}

// asHost is the figure of a row of the loopback in the place's own network namespace, which on the
// bare host has all rules for packets that the host has. The row itself is measured in a namespace
// without any, in nodes as on the bare host. How they differ on the bare host is what its rules
// cost: it says nothing of nodes, and so is told and not judged.
func (r row) asHost() test.Figure {
	f := r.Figure
	f.Name = "host's rules, " + f.Name
	f.Better = test.Neither
	return f
}

// rows are all measurements, in the order of the table.
func rows() []row {
	shell := took("fork-sh", "process fork+sh")
	// On the bare host the layer's shell is started by the layer's dynamic linker, by name: not quite
	// the same work.
	shell.Better = test.Neither
	return []row{
		took("syscall", "simple syscall"),
		took("read", "simple read"),
		took("write", "simple write"),
		took("stat", "simple stat"),
		took("open-close", "simple open/close"),
		took("select-500-tcp", "select on 500 tcp fds"),
		took("signal-install", "signal handler installation"),
		took("signal-catch", "signal handler overhead"),
		took("protection-fault", "protection fault"),
		took("pipe-latency", "pipe latency"),
		took("context-switch", "context switch"),
		took("fork-exit", "process fork+exit"),
		took("fork-execve", "process fork+execve"),
		shell,
		took("int-add", "integer add"),
		took("int-mul", "integer mul"),
		took("int-div", "integer div"),
		took("float-add", "float add"),
		took("float-mul", "float mul"),
		took("float-div", "float div"),
		took("double-add", "double add"),
		took("double-mul", "double mul"),
		took("double-div", "double div"),
		local(took("udp-latency", "rpc/udp latency localhost")),
		local(took("tcp-latency", "rpc/tcp latency localhost")),
		local(took("tcp-connect", "tcp/ip connection to localhost")),
		far(took("far-udp-latency", "rpc/udp latency far")),
		far(took("far-tcp-latency", "rpc/tcp latency far")),
		far(took("far-tcp-connect", "tcp/ip connection far")),
		moved("pipe-bandwidth", "pipe bandwidth"),
		moved("unix-bandwidth", "unix socket bandwidth"),
		moved("memory-copy", "memory copy bandwidth"),
	}
}

func took(name, figure string) row {
	return row{name: name, Figure: test.Figure{Name: figure, Unit: "s", Better: test.Less, Aggregate: test.Mean}}
}

func moved(name, figure string) row {
	return row{name: name, Figure: test.Figure{Name: figure, Unit: "B/s", Better: test.More, Aggregate: test.Sum}}
}

func local(r row) row {
	r.loopback = true
	return r
}

func far(r row) row {
	r.far = true
	return r
}
