package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// stub is a host that gives the answers of a test.
type stub struct {
	local     bool
	secret    string // or "" if it has none
	failure   error
	restoring *observe.RestoreProgress
	snapshot  string
	nodes     []string
	word      string
	held      *[]string // what was locked and unlocked
	releases  observe.Releases
	changed   *observe.Releases // what its record is after it was read once, if another process changes it
	reads     int
	restless  bool // its record has another name each time
	live      int  // the release of node a that is live on it, or 0
}

// The subjects that it implements.
type (
	stubRuns struct {
		RunHost
		*stub
	}
	stubNodes struct {
		NodeHost
		*stub
	}
	stubReleases struct {
		ReleaseHost
		*stub
	}
	stubLayers struct {
		LayerHost
		*stub
	}
	stubSnapshots struct {
		SnapshotHost
		*stub
	}
	stubBackups struct {
		BackupHost
		*stub
	}
	stubSecrets struct {
		SecretHost
		*stub
	}
)

func (s *stub) host() Host {
	return Host{
		Runs: stubRuns{nil, s}, Nodes: stubNodes{nil, s}, Releases: stubReleases{nil, s}, Layers: stubLayers{nil, s},
		Snapshots: stubSnapshots{nil, s}, Backups: stubBackups{nil, s}, Secrets: stubSecrets{nil, s},
	}
}

func (s stubSecrets) Read(context.Context, string) (secret.Stored, error) {
	if s.secret == "" && s.failure == nil {
		return secret.Stored{}, fs.ErrNotExist
	}
	value, generation, _ := strings.Cut(s.secret, "@")
	return secret.Stored{Value: value, Generation: 1 + len(generation)}, s.failure
}

func (s stubBackups) Restoring(context.Context) (*observe.RestoreProgress, error) {
	return s.restoring, s.failure
}

func (s stubSnapshots) Restoring(context.Context) (string, []string, error) {
	return s.snapshot, s.nodes, s.failure
}

func (s stubLayers) ContentInfo(context.Context, string) (image.ContentInfo, error) {
	return image.ContentInfo{Content: s.word}, s.failure
}

func (s stubReleases) Read(context.Context) (observe.Releases, error) {
	if s.reads++; s.reads > 1 && s.changed != nil {
		return *s.changed, s.failure
	}
	if s.restless {
		r := s.releases
		r.ID = fmt.Sprint("restless-", s.reads)
		return r, s.failure
	}
	return s.releases, s.failure
}

func (s stubNodes) List(context.Context) ([]observe.Node, error) {
	if s.live == 0 {
		return nil, s.failure
	}
	return []observe.Node{{Node: spec.Node{Name: "a", Release: s.live}}}, s.failure
}

func (s stubRuns) Lock(context.Context, host.Holder) (func(), error) {
	if s.failure != nil {
		return nil, s.failure
	}
	*s.held = append(*s.held, "lock "+s.word)
	return func() { *s.held = append(*s.held, "release "+s.word) }, nil
}

// fleetOf returns a fleet of hosts sv1, sv2, …. Node a, which may be on any of them, needs the
// secret.
func fleetOf(stubs ...*stub) *Fleet {
	s := &site.Site{Name: "demo", Nodes: []site.Node{{Name: "a", Roles: []string{"r"}}}}
	s.Roles = []site.Role{{Name: "r", Secrets: []site.SecretUse{{Name: "token"}}}}
	f := &Fleet{}
	for i, one := range stubs {
		name := fmt.Sprint("sv", i+1)
		address := fmt.Sprint("10.8.1.", i+1)
		if one.local {
			address = "local"
		}
		s.Hosts = append(s.Hosts, site.Host{Name: name, Address: address})
		f.All = append(f.All, &HostClient{Host: one.host(), Name: name, packer: pack.New(s, nil), fleet: f})
	}
	return f
}

// TestGeneratedSecret: the value of a generated secret is the one that hosts have. No second value
// is made while a host may have another one.
func TestGeneratedSecret(t *testing.T) {
	broken := errors.New("disk failed")
	for what, c := range map[string]struct {
		hosts   []*stub
		only    string // the host of the only node, or "" for any
		unknown []string
		want    string // "new" for a new one
		wrong   string
	}{
		"none has it": {hosts: []*stub{{}, {}}, want: "new"},
		"one has it":  {hosts: []*stub{{}, {secret: "x"}}, want: "x"},
		"two agree":   {hosts: []*stub{{secret: "x"}, {}, {secret: "x"}}, want: "x"},
		"two differ": {hosts: []*stub{{secret: "x"}, {}, {secret: "y"}},
			wrong: "hosts sv1 and sv3 keep different values"},
		"two are in different generations": {hosts: []*stub{{secret: "x"}, {secret: "y@+"}},
			wrong: "host sv1 has generation 1 and host sv2 has 2: a rotation was interrupted"},
		"one cannot tell":          {hosts: []*stub{{secret: "x"}, {failure: broken}}, wrong: "disk failed"},
		"one is left out":          {hosts: []*stub{{}, {}}, unknown: []string{"sv3"}, wrong: "may be kept on sv3"},
		"one is left out, one has": {hosts: []*stub{{}, {secret: "x"}}, unknown: []string{"sv3"}, want: "x"},
		"only another has it": {hosts: []*stub{{}, {secret: "x"}}, only: "sv1",
			wrong: "is kept on host sv2, where no node needs it"},
		"another has another value": {hosts: []*stub{{secret: "y"}, {secret: "x"}}, only: "sv1", want: "y"},
		"another cannot tell":       {hosts: []*stub{{}, {failure: broken}}, only: "sv1", wrong: "disk failed"},
	} {
		f := fleetOf(c.hosts...)
		f.Site().Nodes[0].Host = c.only
		f.Unknown = c.unknown
		stored, err := f.SecretKeeper().Generated(t.Context(), &site.Secret{Name: "token", Generate: 24}, "")
		got := stored.Value
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) || got != "" {
				t.Errorf("%s: %q, %v", what, got, err)
			}
		case err != nil || c.want == "new" && (got == "" || got == "x") || c.want != "new" && got != c.want:
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

// TestRestores: InterruptedRestore returns the part of a restore that has come farthest. A part
// that is complete does not count.
func TestRestores(t *testing.T) {
	part := func(id string, going, placed bool, nodes ...string) *stub {
		return &stub{restoring: &observe.RestoreProgress{ID: id, Going: going, Placed: placed, Nodes: nodes}}
	}
	for what, c := range map[string]struct {
		hosts []*stub
		want  string
	}{
		"none":                     {[]*stub{{}, {}}, ""},
		"one":                      {[]*stub{{}, part("b", false, false)}, "b"},
		"the first of equal ones":  {[]*stub{part("a", false, false), part("b", false, false)}, "a"},
		"of two that go":           {[]*stub{part("a", true, false), part("b", true, false)}, "a"},
		"the second goes":          {[]*stub{part("a", false, false), part("b", true, false)}, "b"},
		"the first goes":           {[]*stub{part("a", true, false), part("b", false, false)}, "a"},
		"one is at its end":        {[]*stub{part("a", true, true), part("b", false, false)}, "b"},
		"it has nodes still to go": {[]*stub{part("a", true, true, "web"), {}}, "a"},
	} {
		got, err := InterruptedRestore(t.Context(), fleetOf(c.hosts...))
		if err != nil || got == nil && c.want != "" || got != nil && got.ID != c.want {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	if _, err := InterruptedRestore(t.Context(), fleetOf(&stub{}, &stub{failure: errors.New("lost")})); err == nil {
		t.Error("a host that cannot tell has no part")
	}
	id, nodes, err := RestoringSnapshot(t.Context(),
		fleetOf(&stub{}, &stub{snapshot: "s1", nodes: []string{"web"}}, &stub{snapshot: "s2", nodes: []string{"no"}},
			&stub{snapshot: "s1", nodes: []string{"db"}}))
	if err != nil || id != "s1" || !slices.Equal(nodes, []string{"web", "db"}) {
		t.Errorf("of snapshots: %s, %v, %v", id, nodes, err)
	}
}

// TestWord: the content digest of a layer is that of this machine, else that of most hosts. Hosts
// that report another one are noted and do not send the layer.
func TestWord(t *testing.T) {
	for what, c := range map[string]struct {
		hosts []*stub // the first host fetches
		want  string
		from  []string
		doubt string
		wrong string
	}{
		"all say the same": {hosts: []*stub{{}, {word: "x"}, {word: "x"}}, want: "x", from: []string{"sv2", "sv3"}},
		"most": {hosts: []*stub{{}, {word: "y"}, {word: "x"}, {word: "x"}}, want: "x",
			from: []string{"sv3", "sv4"}, doubt: "not that of sv2"},
		"this machine": {hosts: []*stub{{}, {word: "y"}, {word: "y"}, {word: "x", local: true}}, want: "x",
			from: []string{"sv4"}, doubt: "sv2"},
		"this machine is first": {hosts: []*stub{{}, {word: "x", local: true}, {word: "y"}, {word: "y"}}, want: "x",
			from: []string{"sv2"}, doubt: "sv4"},
		"one has it no more": {hosts: []*stub{{}, {failure: fs.ErrNotExist}, {word: "x"}}, want: "x",
			from: []string{"sv3"}},
		"one fails": {hosts: []*stub{{}, {failure: errors.New("lost")}, {word: "x"}}, want: "x",
			from: []string{"sv3"}},
		"none has it":            {hosts: []*stub{{}, {failure: fs.ErrNotExist}}, wrong: "is no longer on any of sv1, sv2"},
		"none answers":           {hosts: []*stub{{}, {failure: errors.New("lost")}}, wrong: "lost"},
		"its own does not count": {hosts: []*stub{{word: "x"}}, wrong: "is no longer on any of sv1"},
	} {
		f := fleetOf(c.hosts...)
		s := &plan.Step{Kind: plan.FetchLayer, Layer: &spec.Layer{Digest: "d", Title: "base"}, Sources: f.Names()}
		content, from, err := f.All[0].trustedContent(t.Context(), s)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		doubts := strings.Join(f.Warnings(), "; ")
		if err != nil || content != c.want || !slices.Equal(hostsOf(from), c.from) ||
			(c.doubt == "") != (doubts == "") || !strings.Contains(doubts, c.doubt) {
			t.Errorf("%s: %q from %v, %q, %v", what, content, hostsOf(from), doubts, err)
		}
	}
	f := fleetOf(&stub{}, &stub{word: "x"}, &stub{word: "x"})
	s := &plan.Step{Kind: plan.FetchLayer, Layer: &spec.Layer{Digest: "d", Title: "base"}, Sources: []string{"sv3"}}
	if _, from, err := f.All[0].trustedContent(t.Context(), s); err != nil ||
		!slices.Equal(hostsOf(from), []string{"sv3"}) {
		t.Errorf("of one that is no source: %v, %v", hostsOf(from), err)
	}
}

// TestHoldAll: the lock of a site is taken on all hosts in the order of their names, or on none.
func TestHoldAll(t *testing.T) {
	var did []string
	one, two := &stub{word: "sv1", held: &did}, &stub{word: "sv2", held: &did}
	f := fleetOf(one, two)
	f.All[0], f.All[1] = f.All[1], f.All[0]
	release, err := f.LockAll(t.Context(), host.Holder{})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if want := []string{"lock sv1", "lock sv2", "release sv2", "release sv1"}; !slices.Equal(did, want) {
		t.Errorf("%v", did)
	}
	did, two.failure = nil, problem.New(problem.Locked, "another has it")
	if _, err := f.LockAll(t.Context(), host.Holder{}); !problem.Is(err, problem.Locked) ||
		!slices.Equal(did, []string{"lock sv1", "release sv1"}) {
		t.Errorf("if one is locked: %v, %v", did, err)
	}
}
