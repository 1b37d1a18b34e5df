package unattended

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site/spec"
)

// A keeper is a host that stores copies of some secrets.
type keeper struct {
	apply.SecretHost
	secrets map[string]string
}

func (k keeper) Read(_ context.Context, name string) (secret.Stored, error) {
	if v, ok := k.secrets[name]; ok {
		return secret.Stored{Value: v, Generation: 1}, nil
	}
	return secret.Stored{}, fs.ErrNotExist
}

// TestOwnSecrets: a host on its own has the generated secrets that it stores. For other secrets,
// and for files that contain secrets, the error says which machine can do the same.
func TestOwnSecrets(t *testing.T) {
	h := &Host{host: apply.Host{Secrets: keeper{secrets: map[string]string{"token": "x"}}}}
	for trigger, verb := range map[string]string{apply.TriggerTrial: "orrery rollback", apply.TriggerBoot: "orrery up"} {
		h.plan.Trigger = trigger
		s := hostSecrets{of: h}
		if v, err := s.Value(t.Context(), "token"); err != nil || v != "x" {
			t.Errorf("%q, %v", v, err)
		}
		if v, err := s.Value(t.Context(), "file"); !problem.Is(err, problem.Failed) || v != "" ||
			!strings.Contains(err.Error(), "secret file is not on this host") || !strings.Contains(err.Error(), verb) {
			t.Errorf("of a secret that it has not: %q, %v", v, err)
		}
		if text, err := s.Text(t.Context(), spec.SecretText{Node: "web", Path: "/etc/key"}); !problem.Is(err,
			problem.Failed) || text != nil || !strings.Contains(err.Error(), "/etc/key of node web") ||
			!strings.Contains(err.Error(), verb) {
			t.Errorf("of a file with secrets: %q, %v", text, err)
		}
	}
}

// TestKeyed: the key of a site or twin yields its names, and an invalid key is refused.
func TestKeyed(t *testing.T) {
	for key, want := range map[string][2]string{"karoo": {"karoo", ""}, "karoo.dev": {"karoo", "dev"}} {
		if s, err := siteByKey(key); err != nil || s.Name != want[0] || s.Twin != want[1] || s.Key() != key {
			t.Errorf("%s: %+v, %v", key, s, err)
		}
	}
	for _, key := range []string{"", ".", "karoo.", ".dev", "../karoo", "karoo.dev.more", "karoo/dev", "Karoo"} {
		if s, err := siteByKey(key); !problem.Is(err, problem.Usage) {
			t.Errorf("%q: %+v, %v", key, s, err)
		}
	}
}

// TestDamagedPlan: a plan that lacks part of its content is refused.
func TestDamagedPlan(t *testing.T) {
	_, h := newMachine(t)
	p := apply.UnattendedPlan{Trigger: apply.TriggerTrial, Host: "sv1", Watch: true, Dir: t.TempDir()}
	must(t, p.Write(h.Dirs, h.Key))
	err := h.Run(t.Context(), apply.TriggerTrial, "")
	if !problem.Is(err, problem.Failed) || !strings.Contains(err.Error(), "does not name the switch") {
		t.Errorf("%v", err)
	}
}

// TestLapsesUnread: Lapses does not read plans for which no process waits, because boot plans can
// be large.
func TestLapsesUnread(t *testing.T) {
	m, h := newMachine(t)
	for _, trigger := range []string{apply.TriggerBoot, apply.TriggerMirror, "of-another-version"} {
		path := apply.UnattendedPath(h.Dirs, h.Key, trigger)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("damaged"), 0o600))
	}
	if all := Lapses(t.Context(), m, h.Dirs, StartGrace, func(key string, err error) {
		t.Errorf("%s: %v", key, err)
	}); len(all) > 0 {
		t.Errorf("lapses are %v", all)
	}
}
