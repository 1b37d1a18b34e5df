package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A house is a separate /etc with users, groups and sudo rules, visible only to programs that are
// called in it. It does not affect the machine, and nothing of it stays if the test is killed.
type house struct {
	*site
	dir string
}

// newHouse makes a house with orrery installed for the members of the group orrery.
func newHouse(s *site) *house {
	s.Helper()
	dir, err := os.MkdirTemp("", "orrery-house-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &house{s, dir}
	h.must(os.Chmod(dir, 0o755))
	h.root(`umask 022
mkdir -p $D/prefix/bin $D/evil; cp -a /etc $D/etc; mount --bind $D/etc /etc
cp ` + program + ` $D/prefix/bin/orrery
sed "s|@BIN@|$D/prefix/bin|g" ../packaging/orrery-member > $D/prefix/bin/orrery-member; chmod 755 $D/prefix/bin/*
groupadd orrery; groupadd operators
for u in ada bob carl; do useradd -m -d $D/home-$u $u; done
usermod -aG orrery,operators ada; usermod -aG orrery bob
PREFIX=$D/prefix ../packaging/members orrery
{ echo "state = \"` + s.dirs.State + `\""; echo "run = \"` + s.dirs.Run +
		`\""; } | cat - /etc/orrery/host.toml > $D/host.toml
cat $D/host.toml > /etc/orrery/host.toml
visudo -c`)
	return h
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// root runs a script in the house.
func (h *house) root(script string) string {
	h.Helper()
	cmd := exec.Command("unshare", "--mount", "/bin/sh", "-euc", script)
	cmd.Env = append(os.Environ(), "D="+h.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// as runs a script as a user, in which $orrery is the command that the user calls.
func (h *house) as(who, script string) result {
	h.Helper()
	const enter = `mount --bind $D/etc /etc; cd /; exec setpriv --reuid "$1" --regid "$1" --init-groups --reset-env /bin/sh -uc "cd $D/home-$1; $2"`
	cmd := exec.Command("unshare", "--mount", "/bin/sh", "-eu", "-c", enter, "sh", who,
		"orrery="+h.dir+"/prefix/bin/orrery-member D="+h.dir+"; "+script)
	cmd.Env = append(os.Environ(), "D="+h.dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.Fatal(err)
	}
	return result{h.site, []string{"as", who, script}, cmd.ProcessState.ExitCode(), out.String(), errs.String(), 0}
}

// TestMember: users who are not root call the program through an unmodified sudo. It runs alone,
// because its commands rely on there being only one site when they name none.
func TestMember(t *testing.T) {
	s := newSite(t, "it-member", `
site.owners = ["@operators"]
[twin]
members = ["ada", "bob"]
[network.lan]
subnet = "10.99.140.0/24"
[image.debian]
suite = "bookworm"
[defaults]
memory = "128MiB"
[node.one]
id = 1
[node.trusted]
id = 2
privileged = true
[release.701]
`, nil)
	s.do("up")
	h := newHouse(s)

	// Owners of the site.
	h.as("ada", `$orrery status`).want(0, "one .*running")
	h.as("ada", `echo said | $orrery exec one -- sh -c 'cat; id -u'`).want(0, `one \| said`, `one \| 0`)
	h.as("ada", `sleep 5 | script -qec "stty rows 21 cols 43; $orrery shell one -- sh -c 'stty size; exit 7'" /dev/null`).
		want(7, "21 43")
	h.as("ada", `$orrery -C it-member logs one -n 3`).want(0, "journal of node one")
	h.as("ada", `$orrery exec trusted -- true`).want(101, "is privileged")
	h.as("ada", `$orrery shell trusted -- true`).want(9, "is privileged")
	h.as("ada", `$orrery stop --hard one && $orrery start one`).want(0)
	h.as("ada", `$orrery stop --timeout 1h one`).want(9, "--timeout of orrery stop is for root only")
	h.as("ada", `$orrery stage --release 701 && $orrery switch --release 701 && $orrery rollback`).
		want(0, "release none, formerly 701")
	h.as("ada", `$orrery __complete -C $D/evil up ''`).want(9, "root only")

	// Commands that are not for members say what to do.
	for script, why := range map[string]string{
		`$orrery up`: "of site it-member is for root only.*stage and switch",
		`$orrery cp one:/etc/passwd /etc/cron.d/`:                                                               "for root only.*administrator",
		`$orrery logs --layer ../../x`:                                                                          "--layer of orrery logs is for root only",
		`$orrery twin create it-member x --volumes $D/home-ada/fill`:                                            "it would be run as root",
		`$orrery twin create it-member x --nat`:                                                                 "nat = true",
		`$orrery twin create it-member x --owner bob`:                                                           "--owner",
		`mkdir evil; echo 'site.name = \"it-member\"' > evil/site.toml; cd evil; $orrery -C . exec one -- true`: "not a site that root has brought up",
		`$orrery twin create ~/evil x`:                                                                          "not a site that root has brought up",
	} {
		h.as("ada", script).want(9, why)
	}
	h.as("bob", `$orrery exec one -- true`).want(9, "bob is not an owner of site it-member; .*ask @operators")
	h.as("bob", `$orrery switch --release 701`).want(9, "not an owner")
	h.as("bob", `$orrery stop one`).want(9, "not an owner")
	h.as("bob", `sudo -n $D/prefix/bin/orrery version`).want(1, "password is required")
	h.as("carl", `sudo -n $orrery status`).want(1, "password is required")

	// The callers' environment has no effect.
	h.as("ada", `export SUDO_USER=root SUDO_UID=0 ORRERY_STATE=$D/evil PATH=$D/evil:$PATH GODEBUG=x; ulimit -n 40
$orrery exec one -- echo as-her`).want(0, "as-her")
	h.as("ada", `sudo -n SUDO_UID=0 $orrery status`).want(1, "not allowed to set")

	// Twins.
	h.as("bob", `$orrery twin create it-member dev --only one --expires 1h`).want(0, "one .*running")
	h.as("bob", `$orrery twin create it-member dev2`).want(9, "at most 1 twin of this site at a time")
	h.as("bob", `$orrery --twin dev exec one -- true && $orrery twin exec dev one -- true && $orrery --twin dev stop one && $orrery --twin dev up`).want(0)
	h.as("ada", `$orrery twin destroy dev`).want(9, "twin dev belongs to bob.*ask bob")
	h.as("ada", `$orrery --twin dev --force exec one -- true`).want(9, "--force")
	h.as("ada", `$orrery twin exec dev --force one -- true`).want(9, "for root only|belongs to bob")
	h.as("carl", `$orrery twin destroy dev`).want(1)
	h.as("bob", `$orrery twin destroy dev`).want(0, "Twin dev of it-member is gone")

	// The journal has the members' names.
	who := map[string]string{}
	var entries []struct{ Kind, Who, Command string }
	if err := json.Unmarshal(replied(s.do("journal", "--json", "-n", "100")), &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if fields := strings.Fields(e.Command); e.Kind == "begin" && len(fields) > 1 {
			who[fields[1]] += e.Who + " "
		}
	}
	for verb, want := range map[string]string{"exec": "ada ada ada ", "stop": "ada ", "start": "ada ",
		"stage": "ada ", "switch": "ada ",
		"rollback": "ada ", "twin": "bob bob "} {
		if who[verb] != want {
			t.Errorf("in the journal %s is of %q, want %q", verb, who[verb], want)
		}
	}

	// Members cannot use a site directory that other users can write to.
	h.must(os.Chmod(filepath.Join(s.dir, "site.toml"), 0o666))
	h.as("ada", `$orrery status`).want(9, "users other than root can change the site.*chmod -R go-w")
}
