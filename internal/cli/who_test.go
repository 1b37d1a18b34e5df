package cli

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"orrery/internal/cli/labverb"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// whoMay is the header of the table in docs/members.md that says who may call a verb.
const whoMay = "| verb | root | owner of the site | owner of a twin, there | other member | stranger |\n"

// A whoRow is a line of that table.
type whoRow struct {
	line  string
	cells []string // after the verbs
}

// readWhoRows returns the rows of the table by verb.
func readWhoRows(t *testing.T) map[string]whoRow {
	t.Helper()
	text, err := os.ReadFile("../../docs/members.md")
	mustDo(t, err)
	_, rows, ok := strings.Cut(string(text), whoMay)
	if !ok {
		t.Fatal("docs/members.md has no table of who may call what")
	}
	byVerb := map[string]whoRow{}
	for line := range strings.Lines(rows) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for _, verb := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			if _, twice := byVerb[verb[1]]; twice {
				t.Errorf("docs/members.md: %s is in two lines of the table", verb[1])
			}
			byVerb[verb[1]] = whoRow{strings.TrimSpace(line), cells[1:]}
		}
	}
	return byVerb
}

// callableVerbs returns the verbs that do something by themselves, such as "twin ls".
func callableVerbs(c *cobra.Command) (all []string) {
	for _, inner := range c.Commands() {
		if inner.Hidden {
			continue
		}
		all = append(all, callableVerbs(inner)...)
		// the help of a verb that only has others within it is not a call
		if _, verb, _ := strings.Cut(inner.CommandPath(), " "); !inner.HasSubCommands() || takesMore(verb) {
			all = append(all, verb)
		}
	}
	return all
}

// takesMore reports whether a verb that has others within it also does something by itself.
func takesMore(verb string) bool {
	return slices.Contains([]string{"query", "snapshot", "backup", "rehearse"}, verb)
}

// TestWhoMay checks each cell of the table of who may call which verb, and that each verb is in it.
//
// Promise (Members): A member can do what the table allows and nothing else, whatever the flags.
// With member.TestMay, member.TestMayHave, test.TestMember.
func TestWhoMay(t *testing.T) {
	rows := readWhoRows(t)
	t.Setenv("ORRERY_STATE", t.TempDir())
	t.Setenv("ORRERY_RUN", t.TempDir())
	t.Chdir(t.TempDir())
	const text = "[site]\nname = \"karoo\"\n[network.lan]\nsubnet = \"10.99.1.0/24\"\n[image.debian]\n" +
		"suite = \"bookworm\"\n[node.one]\nid = 11\n[secret.db]\ngenerate = 32\n[release.7]\n"
	mustDo(t, os.WriteFile("site.toml", []byte(text), 0o600))
	mustDo(t, os.Mkdir("two", 0o700))
	mustDo(t, os.WriteFile("two/site.toml", []byte(text+"[host.local]\n[host.sv2]\naddress = \"root@127.0.0.1:1\"\n"),
		0o600))
	here, err := os.Getwd()
	mustDo(t, err)
	up := (&control.Session{Dirs: host.DefaultDirs()}).Register()
	mustDo(t, up.MarkUp(&site.Site{Name: "karoo"}, here))
	mustDo(t, up.WriteTwin(twin.Record{Site: "karoo", Dir: here, Options: twin.Options{Name: "mine"}}))
	mustDo(t, os.WriteFile("hosts.ini", []byte("[a]\nb\n"), 0o600))
	verbs := append(callableVerbs(Verbs(labverb.Lab{})), "help")
	for _, verb := range verbs {
		row, ok := rows[verb]
		if !ok {
			t.Errorf("docs/members.md does not say who may call %s", verb)
			continue
		}
		if want := []string{"yes", memberMay("ada", verb, ""), memberMay("bob", verb, "dev"),
			memberMay("carl", verb, ""), strangerMay(t, verb)}; !slices.Equal(want, row.cells) {
			t.Errorf("docs/members.md: %s: it is %q, for: %s", verb, want, row.line)
		}
		delete(rows, verb)
	}
	for verb := range rows {
		t.Errorf("docs/members.md says who may call %s, which is no verb", verb)
	}
}

// memberMay returns whether a member may call a verb for a site of ada, or for the twin of bob that is called
// dev. Carl is another member.
func memberMay(who, verb, twin string) string {
	if verb == "twin create" {
		return mayCreateTwin(who)
	}
	if inner, ok := strings.CutPrefix(verb, "twin "); ok && verb != "twin ls" {
		twin = "dev"
		if on, _ := member.ObjectOf(verb); on == member.OnInner {
			verb = inner // which is checked when it is called
		}
	}
	call := member.Call{Verb: verb, Twin: twin, Site: &site.Site{Name: "karoo", Owners: []string{"ada"}}}
	if twin != "" {
		call.Owner = "bob"
	}
	return yes((&member.Person{Name: who}).CheckCall(call))
}

// mayCreateTwin returns "granted" if a member may create a twin exactly if the site file says so.
func mayCreateTwin(who string) string {
	p := &member.Person{Name: who}
	call := member.Call{Verb: "twin create", Site: &site.Site{Owners: []string{"ada"}}}
	call.Site.Twins.Members = []string{"dora"}
	refused := p.CheckCall(call)
	call.Site.Twins.Members = []string{who}
	if yes(refused) == "no" && p.CheckCall(call) == nil {
		return "granted"
	}
	return yes(refused)
}

// yes returns "yes", "no" if the error is a refusal, or another error.
func yes(err error) string {
	switch {
	case err == nil:
		return "yes"
	case problem.Is(err, problem.Refused):
		return "no"
	}
	return err.Error()
}

// arguments has what verbs need before they look at who calls them.
var arguments = map[string]string{
	"backup": "x.orrery", "backup ls": "x.orrery", "backup prune": "x", "backup repair": "x",
	"backup verify": "x.orrery", "console": "one", "cp": "one:/x .", "exec": "one -- true",
	"forget": "x", "forward": "one:80", "host add": "sv2 root@127.0.0.1:1", "host drain": "local",
	"host facts": "local", "host remove": "local -C two", "host undrain": "local",
	"import": "hosts.ini", "lab check": "x", "lab compare": "x -- y", "lab report": "x",
	"logs": "one", "mirror pull": "x", "move": "one --to sv2", "query": "all", "query vars": "one",
	"rehearse boot": "sv1", "rehearse cut": "sv1", "rehearse gaps": "-- true",
	"rehearse join": "sv1", "rehearse kill": "sv1", "rehearse pause": "sv1",
	"rehearse resume": "sv1", "rehearse slow": "sv1 1MiB", "release diff": "7 8",
	"release show": "7", "release trust": "7", "restore": "x.orrery --node one", "role new": "web",
	"role copy": "orrery/nginx", "role show": "orrery/nginx",
	"schema": "site", "screen": "one", "shell": "one -- true",
	"snapshot restore": "20260730-120000", "snapshot rm": "20260730-120000",
	"stage": "--release 7", "switch": "--release 7", "twin create": "karoo mine",
	"twin destroy": "mine", "twin exec": "mine one -- true", "twin forward": "mine one:80",
	"twin shell": "mine one -- true", "twin status": "mine", "volume adopt": "old one",
	"secret rotate": "db",
	"service move":  "portal --to a", "service test": "portal",
	"volume rm": "data",
}

// strangerMay returns whether a user without rights may call a verb of the program itself.
func strangerMay(t *testing.T, verb string) string {
	t.Helper()
	var out, errs bytes.Buffer
	call := newCall(nil, strings.NewReader(""), &out, &errs, nil)
	call.Session.Machine = strangersMachine{here.LocalMachine{Dirs: call.Session.Dirs}}
	root := newRoot(call, labverb.Lab{})
	root.SetArgs(append(strings.Fields(verb), strings.Fields(arguments[verb])...))
	root.SetOut(&out)
	root.SetErr(&errs)
	err := root.ExecuteContext(t.Context())
	switch {
	case errors.Is(err, errStranger):
		return "no"
	case problem.Is(err, problem.Usage) && strings.Contains(err.Error(), "wrong number of arguments"):
		return err.Error() // the verb needs a line in arguments
	case verb == "restore":
		return "files"
	}
	return "yes"
}

var errStranger = problem.New(problem.Unable, "this needs root")

// A strangersMachine is this machine for users who have no rights on it.
type strangersMachine struct{ here.LocalMachine }

func (strangersMachine) Allowed() error { return errStranger }
