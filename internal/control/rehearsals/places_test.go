package rehearsals

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/rehearsal"
	"orrery/internal/site"
)

// TestPlaces: hosts have the addresses of the site. One of them, or an additional one, is the
// control host.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		hosts    []site.Host
		want     []string
		steering int
	}{
		"numbers, and none is local": {
			[]site.Host{{Name: "sv1", Address: "ops@10.8.1.1:2222"}, {Name: "sv2", Address: "root@10.8.1.2"}},
			[]string{"sv1 [] [10.8.1.1/24] 2222 ops", "sv2 [] [10.8.1.2/24] 0 ", "control [] [10.8.1.254/24] 0 "}, 3,
		},
		"one is local, and has an address for others": {
			[]site.Host{{Name: "here", Underlay: netip.MustParseAddr("10.9.0.7")},
				{Name: "sv2", Address: "sv2.example.org", Underlay: netip.MustParseAddr("10.9.0.8")}},
			[]string{"here [] [10.9.0.7/24] 0 ", "sv2 [sv2.example.org] [10.9.0.8/24] 0 "}, 1,
		},
		"names only": {
			[]site.Host{{Name: "control", Address: "control"}, {Name: "sv2", Address: "a@sv2"}},
			[]string{"control [] [198.18.0.254/24] 0 ", "sv2 [] [198.18.0.253/24] 0 a", "control- [] [198.18.0.252/24] 0 "}, 3,
		},
		"the highest address is taken": {
			[]site.Host{{Name: "sv1"}, {Name: "sv2", Address: "10.8.1.254"}},
			[]string{"sv1 [] [10.8.1.253/24] 0 ", "sv2 [] [10.8.1.254/24] 0 "}, 1,
		},
	} {
		all, steering, err := Places(&site.Site{Hosts: c.hosts})
		var got []string
		for _, p := range all {
			got = append(got, said(p))
		}
		if err != nil || !slices.Equal(got, c.want) || steering != c.steering {
			t.Errorf("%s: %q, steered from %d (%v); want %q, from %d", name, got, steering, err, c.want, c.steering)
		}
	}
	if _, _, err := Places(&site.Site{}); err == nil {
		t.Error("a site without hosts can be rehearsed")
	}
}

func said(p rehearsal.Place) string {
	return fmt.Sprint(p.Name, " ", p.Aliases, " ", p.Addresses, " ", p.Port, " ", p.User)
}

// TestOptions: simulated hosts have this program, the site directory under its real path, and the
// layers of this machine.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "site"), filepath.Join(dir, "link")
	err := os.Mkdir(real, 0o700)
	if err == nil {
		err = os.Symlink("site", link)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &control.Session{Dirs: host.Dirs{State: "/state"}, SiteDir: link}
	places := []rehearsal.Place{{Name: "sv1"}, {Name: "sv2"}, {Name: "control"}}
	o, err := options(c, &site.Site{Name: "karoo", Twin: "dev"}, places)
	if err != nil || !slices.Equal(o.Binds, []string{real}) || o.Name != "karoo.dev" || o.Store != "/state/store" ||
		o.State != "/state/rehearsals" || len(o.Places) != 3 || o.Programs["orrery"] == "" {
		t.Errorf("%+v, %v", o, err)
	}
	c.SiteDir = filepath.Join(dir, "gone")
	if _, err := options(c, &site.Site{Name: "karoo"}, places); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is gone: %v", err)
	}
	if names := otherNames(places, 3); !slices.Equal(names, []string{"sv1", "sv2"}) {
		t.Errorf("beside the third there are %v", names)
	}
}
