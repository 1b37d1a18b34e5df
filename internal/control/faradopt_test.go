package control_test

import (
	"strings"
	"testing"

	"orrery/internal/control/volumes"
	"orrery/internal/problem"
)

// TestFarAdopt: a node that replaces another takes over its data on the host of the data. It is
// refused on any other host.
func TestFarAdopt(t *testing.T) {
	d, _ := farDisks(t)
	d.say("db", book, "paid")
	adopt := func() error {
		_, err := volumes.Adopt(t.Context(), d.Session, "db", "ledger", nil)
		return err
	}
	renamed := strings.Replace(twoHosts, "[node.db]\nid    = 11", "[node.ledger]\nid    = 12", 1)
	d.write("site.toml", strings.Replace(renamed, "roles = [\"db\"]\nhost  = \"sv1\"", "roles = [\"db\"]", 1))
	d.wantExit(adopt(), problem.Unable, "the data of db is on host sv1, but node ledger may be placed on another",
		`set host = "sv1" for ledger`)
	d.write("site.toml", strings.Replace(renamed, "roles = [\"db\"]\nhost  = \"sv1\"",
		"roles = [\"db\"]\nhost  = \"sv2\"", 1))
	d.wantExit(adopt(), problem.Unable, "the data of db is on host sv1, but node ledger is on sv2",
		"orrery move ledger --to sv1 first")
	d.write("site.toml", renamed)
	_, err := volumes.Adopt(t.Context(), d.Session, "nobody", "ledger", nil)
	d.wantExit(err, problem.Usage, "nobody has no volume data that node")
	d.must(adopt())
	d.up()
	d.wantSaid("ledger", book, "paid")
	d.wantNodes("ledger none running healthy, web1 none running healthy, web2 none running healthy")
}

// TestFarAdoptThere: the same as TestFarAdopt on a remote host.
func TestFarAdoptThere(t *testing.T) {
	d, other := farDisks(t)
	elsewhere := diskDesk(t)
	elsewhere.machine.others = map[string]*machine{"sv1": d.machine, "sv2": other}
	d.say("db", book, "paid")
	renamed := strings.Replace(twoHosts, "[node.db]\nid    = 11", "[node.ledger]\nid    = 12", 1)
	elsewhere.write("site.toml", strings.Replace(renamed, `address = "local"`, `address = "10.8.1.1"`, 1))
	done, err := volumes.Adopt(t.Context(), elsewhere.Session, "db", "ledger", nil)
	d.must(err)
	if len(done) != 1 || done[0].Volume != "archive" {
		t.Errorf("%+v", done)
	}
	elsewhere.up()
	elsewhere.wantSaid("ledger", book, "paid")
}
