package micro

import (
	"context"
	"strings"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
)

// called are the beginnings of the names of figures that consist of system calls above all.
var called = [...]string{"simple", "signal handler", "pipe latency", "context switch", "process fork+exit"}

// filtered labels a place where each system call goes through a filter first (seccomp(2)), which is
// there in nodes and not on the bare host: some nanoseconds for each call.
func filtered(ctx context.Context, p *place.Place) []test.Label {
	status, err := place.Output(ctx, p, "/bin/cat", "/proc/self/status")
	if err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
		return nil
	}
	var labels []test.Label
	for _, figures := range called {
		labels = append(labels, test.Label{
			Name: "seccomp", Why: "the system calls of this place go through a filter (seccomp), those of the bare host do not",
			Where: figures,
			Cure:  "none is needed: it is what keeping a node from loading kernel modules and opening files by handle costs",
		})
	}
	return labels
}
