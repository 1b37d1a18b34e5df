package here

import (
	"orrery/internal/apply"
	"orrery/internal/problem"
)

// AsLocal returns the operations that are only available on the machine on which the program runs. It
// returns an error if the host is another machine.
func AsLocal(h *apply.HostClient) (apply.NearHost, error) {
	if h.Near != nil {
		return h.Near, nil
	}
	return nil, problem.New(problem.Unable,
		"host %s is another machine: the contents of its nodes and volumes are not available here", h.Name).
		Try("run the same command on that host")
}
