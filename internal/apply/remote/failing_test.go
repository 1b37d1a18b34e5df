package remote

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/transport/rpc"
)

// A failing helper greets, and answers everything else with the same fault.
type failing struct {
	prepared
	with wireError
}

func (f failing) ServeStream(_ context.Context, about string, with *rpc.ServerStream) error {
	var q json.RawMessage
	if err := with.Recv(&q); err != nil {
		return err
	}
	if about == greetMethod.name {
		return with.Send(map[string]any{"result": Greeting{Version: "1"}})
	}
	return with.Send(response{Fault: &f.with})
}

// toHelper connects to a helper.
func toHelper(t *testing.T, runner host.Runner) *Link {
	t.Helper()
	near, far := net.Pipe()
	go rpc.Serve(context.Background(), far, runner) //nolint:errcheck // it ends with the connection
	l, err := Open(t.Context(), "sv2", near, "1", func(err error) error { return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// TestFailsHere: if a call fails on the remote host, it fails here with the error of the host and
// the name of the host.
func TestFailsHere(t *testing.T) {
	broken := wireError{Problems: []wireProblem{{Kind: problem.Unable, What: "the disk is broken", Where: "/var/lib",
		Cure: "get another"}}}
	for name, call := range asksHost() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := call(t.Context(), toHelper(t, failing{with: broken}))
			if err == nil {
				t.Fatal("it succeeds")
			}
			for _, want := range []string{"the disk is broken", "host sv2"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if !problem.Is(err, problem.Unable) {
				t.Errorf("it is of the kind %d: %v", problem.ExitCode(err), err)
			}
		})
	}
}
