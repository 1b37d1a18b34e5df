package lxc

import (
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/host"
)

// TestDialNoNames: no host name reaches the dialler. For a name with several addresses it would
// start other threads, which are in the host's network.
func TestDialNoNames(t *testing.T) {
	e := New(host.Dirs{State: t.TempDir(), Run: t.TempDir()}, nil)
	for _, address := range []string{"localhost:80", "portal:80", "127.0.0.1:http", ":80", "127.0.0.1"} {
		_, err := e.Runner(engine.Ref{Site: "s", ID: 1, Name: "n"}).Dial(t.Context(), "tcp", address)
		if err == nil || !strings.Contains(err.Error(), "names are not looked up") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
