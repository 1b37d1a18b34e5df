package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"orrery/internal/cli/completion"
	"orrery/internal/cli/labverb"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/site/twin"
)

// offered returns what the shell would offer for the last word of a command line, without
// descriptions.
func offered(t *testing.T, line ...string) []string {
	t.Helper()
	var out bytes.Buffer
	Run(append([]string{cobra.ShellCompNoDescRequestCmd, "-C", "../../examples/toykat"}, line...), labverb.Lab{},
		strings.NewReader(""), &out, &bytes.Buffer{})
	all := strings.Split(strings.TrimSpace(out.String()), "\n")
	return all[:len(all)-1] // without the directive
}

// TestComplete: nodes, selectors, releases, twins, snapshots, sites and volumes are offered.
func TestComplete(t *testing.T) {
	state := t.TempDir()
	t.Setenv("ORRERY_STATE", state)
	t.Setenv("ORRERY_RUN", t.TempDir())
	call := &verb.Call{Session: &control.Session{Dirs: host.DefaultDirs(), SiteDir: "../../examples/toykat"}}
	dir, err := filepath.Abs(call.Session.SiteDir)
	mustDo(t, err)
	s, err := call.Session.Load()
	mustDo(t, err)
	mustDo(t, os.MkdirAll(call.Session.Dirs.Site("toykat"), 0o700))
	mustDo(t, call.Session.Register().MarkUp(s, call.Session.SiteDir))
	mustDo(t, call.Session.Register().WriteTwin(twin.Record{Site: "toykat", Dir: dir,
		Options: twin.Options{Name: "dev1", Owner: "ada"}}))
	mustDo(t, call.Session.Register().WriteTwin(twin.Record{Site: "other", Dir: "/srv/other",
		Options: twin.Options{Name: "dev2"}}))
	const id = "20260730-120000"
	mustDo(t, os.MkdirAll(filepath.Join(call.Session.Dirs.Snapshots("toykat"), id), 0o700))
	mustDo(t, os.WriteFile(filepath.Join(call.Session.Dirs.Snapshots("toykat"), id, "snapshot.json"),
		[]byte(`{"id": "`+id+`"}`), 0o600))
	mustDo(t, os.MkdirAll(filepath.Join(call.Session.Dirs.Volumes("toykat"), "pgdata", "db0"), 0o700))
	for line, want := range map[string]string{ // the shell drops what does not begin with the typed text
		"exec":                   "portal group=system role=db network=cam all",
		"exec portal --":         "",
		"shell":                  "portal !group=system !role=db",
		"shell portal":           "!portal",
		"console":                "portal !group=system",
		"screen":                 "portal !group=system",
		"cp":                     "portal:",
		"forward":                "portal: db: !portal",
		"logs portal":            "receptor.service !portal",
		"switch --release":       "700 701",
		"release show":           "700 701",
		"release diff 700":       "701",
		"twin destroy":           "dev1 !dev2",
		"twin shell dev1":        "portal !role=portal",
		"status --twin":          "dev1",
		"snapshot restore":       id,
		"snapshot rm " + id:      id,
		"snapshot restore " + id: "portal role=db",
		"twin create":            "toykat",
		"down --name":            "toykat",
		"volume adopt":           "db0 !db",
		"volume adopt db0":       "db !db0",
		"switch --confirm-by":    "checks hand",
		"version":                "!portal",
	} {
		got := offered(t, append(strings.Fields(line), "")...)
		if want == "" && len(got) > 0 {
			t.Errorf("%s: offered are %q", line, got)
		}
		for _, word := range strings.Fields(want) {
			name, not := strings.CutPrefix(word, "!")
			if slices.Contains(got, name) == not {
				t.Errorf("%s: offered are %q, want %s", line, got, word)
			}
		}
	}
}

// TestPlaces: each verb with arguments declares what they may be.
func TestPlaces(t *testing.T) {
	root := Verbs(labverb.Lab{})
	seen := map[string]bool{}
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		_, verb, _ := strings.Cut(c.CommandPath(), " ")
		seen[verb] = true
		_, takes, _ := strings.Cut(c.Use, " ")
		if takes != "" && !strings.HasPrefix(takes, "--") && !c.Hidden && !strings.HasPrefix(verb, "spead ") &&
			completion.Arguments[verb] == nil {
			t.Errorf("orrery %s takes %s, of which the shell offers nothing", verb, takes)
		}
		for _, inner := range c.Commands() {
			each(inner)
		}
	}
	each(root)
	for verb := range completion.Arguments {
		if !seen[verb] {
			t.Errorf("%s is no verb", verb)
		}
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
