package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// shortLab ends soon.
const shortLab = `
title  = "a short one"
rounds = 5
most   = 5
rounds_per_instance = "none"
again     = "none"
quiet     = "none"
disturbed = 1

[setting.veth]

[test.one]
kind    = "command"
seconds = 0.2
command = "sleep 0.2; echo 1"
figures = [{ name = "one", unit = "1", better = "neither", regex = "([0-9]+)" }]
`

// labResumeHalfMade: a run resumes although it was killed while its nodes were made, one of which
// exists and does not run. Under another kernel it does not resume, and its facts stay.
func labResumeHalfMade(t *testing.T) {
	s := newLab(t)
	s.write("lab/short.toml", shortLab)
	bundle := filepath.Join(s.dir, "bundle")
	run := []string{"lab", "run", filepath.Join(s.dir, "lab/short.toml"), "--to", bundle}
	cmd, _, errs := s.command(run...)
	wait, err := begin(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s.eventually(func() error {
		if s.trials(bundle) >= 4 {
			return nil
		}
		return os.ErrNotExist
	})
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = wait()
	s.run("-C", filepath.Join(bundle, "site"), "stop", "s-veth").want(0)

	facts := filepath.Join(bundle, "facts.json")
	original, err := os.ReadFile(facts)
	if err != nil {
		t.Fatal(err, errs)
	}
	var former map[string]any
	if err := json.Unmarshal(original, &former); err != nil {
		t.Fatal(err)
	}
	former["kernel"] = map[string]any{"release": "5.10.1"}
	changed, _ := json.Marshal(former)
	if err := os.WriteFile(facts, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	s.run(run...).want(6, "began under other conditions", "kernel: 5.10.1 then", "name another directory")
	if now, _ := os.ReadFile(facts); string(now) != string(changed) {
		t.Error("the facts are others")
	}
	if err := os.WriteFile(facts, original, 0o644); err != nil {
		t.Fatal(err)
	}
	s.run(run...).want(0, "resuming ")
	s.wantNoTrace()
	if now, _ := os.ReadFile(facts); string(now) != string(original) {
		t.Error("the facts of the first rounds are others")
	}
	head, _ := os.ReadFile(filepath.Join(bundle, "bundle.json"))
	if !strings.Contains(string(head), `"state": "done"`) || s.trials(bundle) < 6*3 { // interrupted trials are repeated
		t.Errorf("%d trials, %s", s.trials(bundle), head)
	}
}
