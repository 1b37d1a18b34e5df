package here

import (
	"bytes"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestXenCall: calls of the toolstack are distinguished from verbs of users, and errors are written to
// the toolstack's log.
func TestXenCall(t *testing.T) {
	for _, args := range [][]string{nil, {"up"}, {"xen"}, {"--help"}} {
		if IsXenCall(args) {
			t.Errorf("%q is the toolstack's", args)
		}
	}
	for _, c := range []struct {
		args []string
		exit problem.Kind
		want string
	}{
		{[]string{"xen-model"}, problem.Usage, "unexpected number of arguments"},
		{[]string{"xen-link", "/x", "y", "vif1.0"}, problem.Usage, "not an interface number"},
		{[]string{"xen-link", t.TempDir(), "0", "vif1.0"}, problem.Failed, "node.json"},
		{[]string{"xen-model", t.TempDir() + "/none", "-x"}, problem.Failed, "none"},
	} {
		var said bytes.Buffer
		if got := RunXenCall(c.args, &said); !IsXenCall(c.args) || got != int(c.exit) ||
			!strings.Contains(said.String(), c.want) {
			t.Errorf("%q: %d, %q", c.args, got, &said)
		}
	}
}
