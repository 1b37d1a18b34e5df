package micro

import (
	"context"
	"strings"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
)

// syscallFigures lists the prefixes of the figures that measure mainly system calls.
var syscallFigures = [...]string{"simple", "signal handler", "pipe latency", "context switch", "process fork+exit"}

// filterLabels labels a place where each system call first passes a filter (seccomp(2)). Nodes have
// one, the bare host does not. It costs some nanoseconds per call.
func filterLabels(ctx context.Context, p *place.Place) []test.Label {
	status, err := place.Output(ctx, p, "/bin/cat", "/proc/self/status")
	if err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
		return nil
	}
	var labels []test.Label
	for _, figures := range syscallFigures {
		labels = append(labels, test.Label{
			Name: "seccomp", Why: "a filter (seccomp) checks the system calls of this place, but not those of the bare host",
			Where: figures,
			Cure:  "none needed: this is the cost of preventing a node from loading kernel modules and opening files by handle",
		})
	}
	return labels
}
