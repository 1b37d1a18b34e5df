package member

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
)

var (
	ada  = &Person{Name: "ada", Groups: []string{"ada", "orrery", "operators"}}
	bob  = &Person{Name: "bob", Groups: []string{"bob", "orrery", "students"}}
	carl = &Person{Name: "carl", Groups: []string{"carl", "orrery"}}

	karoo = &site.Site{Name: "karoo", Owners: []string{"@operators"},
		Twins: site.TwinRules{Members: []string{"ada", "@students"}, Most: 2, Expires: 8 * time.Hour}}
	closed = &site.Site{Name: "closed"}
)

// TestMay: which verbs and flags each kind of member may use.
func TestMay(t *testing.T) {
	call := func(verb string, flags ...string) Call { return Call{Verb: verb, Flags: flags, Site: karoo} }
	of := func(c Call, s *site.Site) Call { c.Site = s; return c }
	twin := func(c Call, owner string) Call { c.Twin, c.Owner = "dev", owner; return c }
	for _, test := range []struct {
		who  *Person
		call Call
		why  string // "" if allowed
	}{
		// All members may read.
		{carl, call("status", "json", "probe"), ""}, {carl, of(call("status"), closed), ""},
		{carl, twin(call("status"), "ada"), ""},
		{carl, call("twin ls"), ""}, {carl, call("version"), ""}, {carl, call("help"), ""}, {carl, call(""), ""},
		// Owners may stage, switch, and enter nodes.
		{ada, call("stage", "release"), ""}, {ada, call("switch", "release", "confirm-within", "yes-production"), ""},
		{ada, call("rollback"), ""}, {ada, call("confirm"), ""},
		{ada, call("exec", "timeout"), ""}, {ada, call("shell"), ""}, {ada, call("logs", "follow"), ""},
		{ada, call("journal"), ""}, {ada, call("release ls"), ""},
		{ada, call("stop", "hard", "yes-production"), ""}, {ada, call("restart"), ""}, {ada, call("start"), ""},
		{bob, call("stop"), "not an owner"}, {bob, call("start"), "not an owner"}, {carl, call("restart"), "not an owner"},
		{ada, of(call("stop"), closed), "not an owner"}, {ada, twin(call("stop"), "bob"), "belongs to bob"},
		{bob, call("stage"), "bob is not an owner of site karoo"}, {bob, call("exec"), "not an owner"},
		{bob, call("logs"), "not an owner"}, {carl, call("journal"), "not an owner"},
		{ada, of(call("stage"), closed), "not an owner"}, {ada, of(call("shell"), closed), "not an owner"},
		// Twins: those whom the site names, each with their own.
		{ada, call("twin create", "expires"), ""}, {bob, call("twin create"), ""},
		{carl, call("twin create"), "carl may not create twins"}, {bob, of(call("twin create"), closed),
			"bob may not create twins"},
		{bob, twin(call("exec"), "bob"), ""}, {bob, twin(call("up"), "bob"), ""}, {bob, twin(call("stop"), "bob"), ""},
		{bob, twin(call("stage"), "bob"), ""}, {bob, twin(call("twin destroy"), "bob"), ""},
		{bob, twin(call("twin destroy"), "ada"), "twin dev belongs to ada"},
		{ada, twin(call("exec"), "bob"), "belongs to bob"}, {carl, twin(call("logs"), ""), "belongs to"},
		{ada, twin(call("up"), "root"), "belongs to root"}, {&Person{}, twin(call("exec"), ""), "belongs to"},
		// Verbs that change the host, or read and write its files, are for root.
		{ada, call("up"), "of site karoo is for root only"},
		{ada, call("down"), "root only"}, {ada, twin(call("down"), "ada"), "root only"},
		{ada, call("cp"), "root only"}, {ada, call("backup"), "root only"}, {ada, call("restore"), "root only"},
		{ada, call("resume"), "root only"}, {ada, call("host-run"), "root only"},
		{ada, call("snapshot restore"), "root only"}, {ada, call("volume mirror"), "root only"},
		{ada, call("image import"), "root only"}, {ada, call("lab run"), "root only"},
		{ada, call("ci"), "root only"}, {ada, call("init"), "root only"}, {ada, call("check"), "root only"},
		{ada, call("release prune"), "root only"},
		{ada, call("__complete"), "root only"}, {ada, call("completion bash"), "root only"},
		{ada, call("forward"), "root only"},
		// Flags that would reach further.
		{ada, call("logs", "layer"), "--layer of orrery logs is for root only"}, {ada, call("stage", "force"), "--force"},
		{ada, call("stop", "timeout"), "--timeout"}, {ada, call("restart", "without"), "--without"},
		{ada, twin(call("exec", "force"), "bob"), "--force"},
		{ada, call("twin create", "owner"), "--owner"}, {ada, call("plan", "down"), "--down"},
		{ada, call("exec", "some-flag-of-tomorrow"), "root only"},
		{ada, Call{Verb: "exec"}, "needs a site"}, {ada, call("twin destroy"), "no twin is named"},
	} {
		err := test.who.CheckCall(test.call)
		switch {
		case test.why == "" && err != nil:
			t.Errorf("%s: %+v: %v", test.who.Name, test.call, err)
		case test.why != "" && (err == nil || !strings.Contains(err.Error(), test.why) ||
			problem.ExitCode(err) != int(problem.Refused)):
			t.Errorf("%s: %s %v on %s%s: %v", test.who.Name, test.call.Verb, test.call.Flags, test.call.Twin, test.call.Owner,
				err)
		}
	}
}

// TestMayHave: the limits for twins of members.
func TestMayHave(t *testing.T) {
	rules := site.TwinRules{Most: 2, Expires: 8 * time.Hour}
	for _, test := range []struct {
		wish TwinRequest
		time time.Duration
		why  string
	}{
		{TwinRequest{Volumes: "empty"}, 8 * time.Hour, ""},
		{TwinRequest{Volumes: "empty", Has: 1, Expires: time.Hour, Scale: 0.5}, time.Hour, ""},
		{TwinRequest{Volumes: "empty", Has: 2}, 0, "at most 2"},
		{TwinRequest{Volumes: "empty", Expires: 9 * time.Hour}, 0, "8h0m0s at most"},
		{TwinRequest{Volumes: "empty", Scale: 2}, 0, "not be larger"},
		{TwinRequest{Volumes: "empty", NAT: true}, 0, "--nat"},
		{TwinRequest{Volumes: "snapshot"}, 0, "not have the site's data"},
		{TwinRequest{Volumes: "/home/bob/fill"}, 0, "it would be run as root"},
		{TwinRequest{}, 0, "run as root"},
	} {
		granted, err := CheckTwin(rules, test.wish)
		if (err == nil) != (test.why == "") || err != nil && !strings.Contains(err.Error(), test.why) ||
			granted != test.time {
			t.Errorf("%+v: %s, %v", test.wish, granted, err)
		}
	}
	rules.NAT, rules.Data = true, true
	if _, err := CheckTwin(rules, TwinRequest{Volumes: "snapshot", NAT: true}); err != nil {
		t.Error(err)
	}
}

// TestRootsAlone: a site directory is refused if users other than root can write to anything in it
// or above it.
//
// Promise (Members): Members act only on sites that root has brought up, from a directory where
// only root can write. With member.TestConfigured, test.TestMember.
func TestRootsAlone(t *testing.T) {
	dir := t.TempDir() + "/a/site"
	if err := os.MkdirAll(dir+"/roles/x", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/roles/x/role.toml", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := CheckRootOwned(t.Context(), dir)
	if os.Geteuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "users other than root can change the site") {
			t.Errorf("a directory of user %d: %v", os.Getuid(), err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"..", ".", "roles", "roles/x", "roles/x/role.toml"} {
		at = filepath.Join(dir, at)
		for name, spoil := range map[string]func() error{
			"group":  func() error { return os.Chmod(at, 0o775) },
			"others": func() error { return os.Chmod(at, 0o757) },
			"owner":  func() error { return os.Lchown(at, 1001, 0) },
		} {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			if err := CheckRootOwned(t.Context(), dir); problem.ExitCode(err) != int(problem.Refused) {
				t.Errorf("%s of %s can write: %v", name, at, err)
			}
			if err := os.Lchown(at, 0, 0); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(at, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(dir, dir+"-link"); err != nil {
		t.Fatal(err)
	}
	if err := CheckRootOwned(t.Context(), dir+"-link"); problem.ExitCode(err) != int(problem.Refused) {
		t.Errorf("a link: %v", err)
	}
}

// TestConfigured: a configuration is used only if root wrote it and all of it is valid.
func TestConfigured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "host.toml")
	write := func(text string, mode os.FileMode) {
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadConfiguration(file); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("none: %v", err)
	}
	write("[members]\ngroup = \"orrery\"\n", 0o666)
	if _, err := ReadConfiguration(file); problem.ExitCode(err) != int(problem.Refused) {
		t.Errorf("one of anybody: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	write("state = \"/srv/state\"\n[members]\ngroup = \"orrery\"\n", 0o644)
	c, err := ReadConfiguration(file)
	if err != nil || c.Members.Group != "orrery" || c.Dirs().State != "/srv/state" || c.Dirs().Run != "/run/orrery" {
		t.Errorf("%+v, %v", c, err)
	}
	for text, why := range map[string]string{
		"":                              "not the name of a group",
		"[members]\ngroup = \"\"\n":     "not the name of a group",
		"[members]\ngroups = [\"a\"]\n": `did you mean "group"?`,
		"[members]\ngroup = [\"a\"]\n":  "host.toml:2",
		"state = \"x\"\n[members]\ngroup = \"a\"\n": "does not begin with /",
		"[members\n": "host.toml:1",
	} {
		write(text, 0o644)
		if _, err := ReadConfiguration(file); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
