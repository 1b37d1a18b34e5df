package plan_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/plan/wayback"
	"orrery/internal/site"
)

// travelled returns a step after encoding and decoding, and checks that nothing of it was lost.
func travelled(t failer, s *plan.Step) *plan.Step {
	t.Helper()
	text, err := plan.Encode(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	decoded, err := plan.Decode(text)
	if err != nil {
		t.Fatalf("%s: %v\n%s", s, err, text)
	}
	before, now := reflect.ValueOf(*s), reflect.ValueOf(*decoded)
	for i := range before.NumField() { // including those left out when a plan is shown
		a, _ := json.Marshal(before.Field(i).Interface())
		b, _ := json.Marshal(now.Field(i).Interface())
		if string(a) != string(b) {
			t.Fatalf("%s: %s was\n%s\nand is\n%s", s, before.Type().Field(i).Name, a, b)
		}
	}
	return decoded
}

// TestStepsTravel: all steps of plans and undo plans are the same after encoding and decoding.
func TestStepsTravel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		s := g.edited(t).site()
		live := func() (*site.Site, error) { return s, nil }
		p := f.up(t, s, plan.Goal{})
		pack.MarkRestarts(p)
		for _, p := range []*plan.Plan{p, wayback.Undo(p, p.Steps), plan.Down(s, f.observe(), plan.Goal{Volumes: true})} {
			packer := pack.New(s, nil)
			for _, step := range p.Steps {
				whole, err := packer.Pack(step, live)
				if err != nil && step.Reason == "undo" {
					continue // of a node that is not declared any more
				}
				if err != nil {
					t.Fatalf("%s: %v", step, err)
				}
				travelled(t, whole)
			}
		}
	})
}

// TestDecodeIsStrict: unknown fields are an error.
func TestDecodeIsStrict(t *testing.T) {
	text, err := plan.Encode(&plan.Step{Kind: plan.RemoveVolume, Host: "sv1", Subject: "x", Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`"kind":"unvolume"`, `"kind":"unheard-of"`}, {`"version":1`, `"version":2`}, {`"path":"/x"`, `"path":"/x","more":1`},
		{`"subject":"x"`, `"subject":"x","more":1`}, {`{"version"`, `[{"version"`},
	} {
		if s, err := plan.Decode([]byte(strings.Replace(string(text), c[0], c[1], 1))); err == nil {
			t.Errorf("with %s it is %+v", c[1], s)
		}
	}
	if _, err := plan.Decode(append(text, '{', '}')); err == nil {
		t.Error("what stands behind it is passed over")
	}
	if _, err := plan.Encode(&plan.Step{Kind: "unheard-of"}); err == nil {
		t.Error("what is not known is encoded")
	}
}

// TestNoSecretTravels: a step contains the places of secrets, but neither their values nor a text
// with a value in it.
func TestNoSecretTravels(t *testing.T) {
	s := drawnSecret()
	packer := pack.New(s, nil)
	hosts := newFleet("sv1").observe()
	p, err := plan.Up(s, hosts, plan.Goal{})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, step := range p.Steps {
		whole, err := packer.Pack(step, func() (*site.Site, error) { return s, nil })
		if err != nil {
			t.Fatal(err)
		}
		if whole = travelled(t, whole); whole.Duties == nil || whole.Subject != "a" {
			continue
		}
		for _, f := range whole.Duties.Roles[0].Rendered {
			if !f.Secret || f.Content != nil || f.Mode != 0o600 {
				t.Errorf("%s: %+v", step, f)
			}
			count++
		}
	}
	if count == 0 {
		t.Error("no step has the file")
	}
}

// drawnSecret returns a site with a node that has a file with a secret in it.
func drawnSecret() *site.Site {
	s := wired()
	s.Secrets = []site.Secret{{Name: "key", File: "/nowhere"}}
	s.Roles = []site.Role{{
		Name: "db", Dir: "roles/db", Secrets: []site.SecretUse{{Name: "key", Owner: "root:root", Mode: 0o400}},
		Files: []site.File{{Path: "/etc/db", Template: "t", Content: []byte(`password={{secret "key" | quote}}`),
			Mode: 0o644, Unsaid: true}},
	}}
	s.Nodes[0].Roles = []string{"db"}
	return s
}
