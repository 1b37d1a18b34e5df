package micro

import "orrery/internal/lab/test"

// A row is a measurement of orrery-micro and its figure.
type row struct {
	name string
	test.Figure
	far      bool
	loopback bool // the packets use the loopback interface
}

// asHost returns the figure of a loopback row in the place's own network namespace. On the bare
// host, this namespace has the host's packet filter rules. The row itself is measured in a
// namespace without rules, in nodes and on the bare host. On the bare host, the difference is the
// cost of the host's rules. It says nothing about nodes, so the figure is shown but not judged.
func (r row) asHost() test.Figure {
	f := r.Figure
	f.Name = "host's rules, " + f.Name
	f.Better = test.Neither
	return f
}

// rows returns all measurements, in the order of the table.
func rows() []row {
	shell := took("fork-sh", "process fork+sh")
	// On the bare host the layer's dynamic linker starts the layer's shell by name, which is not
	// quite the same work.
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
