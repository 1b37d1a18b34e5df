package kvm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/vm"
	"orrery/internal/problem"
	"orrery/internal/transport/rpc"
)

// A liar is a guest's agent that gives any answer to requests about volumes, or none.
type liar struct {
	says  error
	never bool
}

func (l liar) Unmount(ctx context.Context, _ []string) error { return l.RefreshMounts(ctx, nil) }

func (l liar) RefreshMounts(ctx context.Context, _ []string) error {
	if l.never {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return l.says
}

// TestForgetLies: a guest's answer to what uses a volume is limited and sanitized. The wait for it
// is limited. Any answer but success is reported as an error.
func TestForgetLies(t *testing.T) {
	for name, c := range map[string]struct {
		agent liar
		want  string
	}{
		"honest": {liar{says: &rpc.InUse{By: "rows (process 7) with /srv/x"}},
			"a volume is in use by rows (process 7) with /srv/x (stop what uses it"},
		"nobody":  {liar{says: &rpc.InUse{}}, "in use by a process unknown to the guest's kernel"},
		"hostile": {liar{says: &rpc.InUse{By: "\x1b[2Jall is well\u202e\nindeed"}}, `\x1b[2Jall is well\u202e\nindeed`},
		"flood":   {liar{says: &rpc.InUse{By: strings.Repeat("\x1b", 1<<20)}}, "a volume is in use by"},
		"fails":   {liar{says: errors.New("no")}, "the guest agent could not change its volumes"},
		"old": {liar{says: problem.New(problem.Unable, `it does not know "forget"`)},
			"from an earlier version of Orrery and cannot change volumes (orrery restart db"},
		"never": {liar{never: true}, "the guest agent could not change its volumes"},
		"yes":   {liar{}, ""}, // the host finds out when it unmounts
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if name != "never" {
			ctx = t.Context()
		}
		s := &remounting{m: machine{Machine: vm.Machine{Ref: engine.Ref{Site: "s", Name: "db"}}},
			agent: func(context.Context) (volumeAgent, error) { return c.agent, nil }}
		for what, err := range map[string]error{"forget": s.unmountInGuest(ctx, []string{"/srv/x"}),
			"find": s.findInGuest(ctx, []string{"/srv/x"})} {
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if err != nil && (problem.ExitCode(err) != int(problem.Failed) || len(err.Error()) > 2*vm.MaxUsersBytes ||
				strings.ContainsAny(err.Error(), "\x1b\u202e")) {
				t.Errorf("%s, %s: %d bytes, status %d: %.200q", name, what, len(err.Error()), problem.ExitCode(err), err)
			}
		}
		cancel()
	}
	s := &remounting{m: machine{Machine: vm.Machine{Ref: engine.Ref{Site: "s", Name: "db"}}},
		agent: func(context.Context) (volumeAgent, error) { return nil, errors.New("nobody answers") }}
	if err := s.unmountInGuest(t.Context(), []string{"/srv/x"}); err == nil ||
		!strings.Contains(err.Error(), "node db: the guest agent could not change its volumes") {
		t.Error(err)
	}
}
