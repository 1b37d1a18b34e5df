package vm

import (
	"context"
	"errors"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/transport/rpc"
)

// using is an agent with a fixed answer for each disk.
type using map[string]error

func (u using) CheckDisksUnused(_ context.Context, serials []string) error { return u[serials[0]] }

// TestUnused: a disk is unplugged only if the guest answers that nothing uses it. Any other answer
// is an error with sanitized text, which names the disk and the cure.
func TestUnused(t *testing.T) {
	m := Machine{Ref: engine.Ref{Site: "s", Name: "db"}}
	both := []site.Drive{{Name: "a"}, {Name: "b"}}
	for name, c := range map[string]struct {
		disks []site.Drive
		says  error
		none  bool // there is no agent
		want  string
	}{
		"unused":  {disks: both},
		"no disk": {none: true},
		"mounted": {disks: both, says: &rpc.InUse{By: "the mount at /srv"},
			want: "disk b is in use by the mount at /srv (unmount it in the node, and run the same command again; or orrery stop db"},
		"hostile": {disks: both, says: &rpc.InUse{By: "\x1b[2J\n"}, want: `disk b is in use by \x1b[2J\n`},
		"old": {disks: both, says: problem.New(problem.Unable, `it does not know "unused"`),
			want: "from an earlier version of Orrery and cannot report whether disk b is in use (orrery restart db"},
		"fails": {disks: both, says: errors.New("no"),
			want: "disk b may be in use: its guest did not answer: no (orrery stop db"},
		"no agent": {disks: both, none: true, want: "disk a may be in use: its guest did not answer: nobody answers"},
	} {
		err := checkUnused(t.Context(), m, c.disks, func(context.Context) (diskUser, error) {
			if c.none {
				return nil, errors.New("nobody answers")
			}
			return using{"b": c.says}, nil
		})
		if (err == nil) != (c.want == "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || problem.ExitCode(err) != int(problem.Failed)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
