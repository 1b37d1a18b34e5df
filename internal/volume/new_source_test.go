package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/plan/place"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/site/spec"
)

// cluster is a source that does not exist in Orrery: directories of a file system that all hosts
// have mounted.
type cluster struct {
	onHost
	dir string
}

func (c cluster) Root(_ host.Dirs, _ string, m spec.Mount) string {
	return filepath.Join(c.dir, strings.ReplaceAll(m.Address(), "/", "_"))
}

func (c cluster) Mount(dirs host.Dirs, m spec.Mount) error {
	return os.Mkdir(c.Root(dirs, "", m), 0o700)
}

// TestNewSource adds a source of volumes: its description to one list, its implementation to
// another. A real change would also add a field for its key to site.Remote. Here, an address with a
// prefix stands for that.
func TestNewSource(t *testing.T) {
	before := site.VolumeSources
	t.Cleanup(func() { site.VolumeSources = before; delete(Sources, "cluster") })
	site.VolumeSources = append([]site.VolumeSource{{
		Key: "cluster", Everywhere: true, Left: "it is on the cluster", What: "path of the cluster", Example: "/pgdata",
		Address: func(r site.Remote) string {
			if address, ok := strings.CutPrefix(r.NFS, "cluster:"); ok {
				return address
			}
			return ""
		},
		Valid: func(address string) bool { return strings.HasPrefix(address, "/") },
	}}, before...)
	Sources["cluster"] = cluster{dir: t.TempDir()}

	s := &site.Site{
		Name: "karoo", Hosts: []site.Host{{Name: "sv1"}, {Name: "sv2"}},
		Volumes: []site.Volume{{Name: "data", Shared: true, Remote: site.Remote{NFS: "cluster:/data"}}},
		Roles: []site.Role{{Name: "db", Volumes: []site.VolumeUse{
			{Name: "data", Path: "/srv/data", Owner: "root:root", Mode: 0o750, Exclusive: true, Quarantine: site.CopySnapshot},
		}}},
		Nodes: []site.Node{{Name: "db0", ID: 1, Roles: []string{"db"}, Host: "sv1"},
			{Name: "db1", ID: 2, Roles: []string{"db"}, Host: "sv2"}},
	}
	wrong := func() string {
		var all []string
		for _, m := range check.Check(s) {
			all = append(all, m.What)
		}
		return strings.Join(all, "\n")
	}
	if got := wrong(); strings.Contains(got, "cluster") || strings.Contains(got, "volume data") {
		t.Error(got)
	}
	s.Volumes[0].NFS = "cluster:data"
	if got := wrong(); !strings.Contains(got, `cluster = "data" is not a valid path of the cluster`) {
		t.Error(got)
	}
	s.Volumes[0].NFS, s.Volumes[0].Path = "cluster:/data", "/srv/data"
	if got := wrong(); !strings.Contains(got, "volume data has both path and cluster") {
		t.Error(got)
	}
	s.Volumes[0].Path = ""

	if why, _ := place.MoveObstacle(s, &s.Nodes[0]); why != "" || len(place.SharedVolumes(s)) > 0 {
		t.Errorf("node db0 cannot move: %s", why)
	}
	staged := *s
	staged.Stage = 700
	apart, err := spec.NewBuilder(&staged).Node(&staged.Nodes[0])
	if err != nil || apart.Mounts[0].Copy != site.CopyEmpty {
		t.Errorf("in quarantine it has %+v: %v", apart.Mounts, err)
	}
	n, err := spec.NewBuilder(s).Node(&s.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	m, dirs := n.Mounts[0], host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	if err := Provide(t.Context(), dirs, "karoo", "db0", m, me); err != nil {
		t.Fatal(err)
	}
	path := Path(dirs, "karoo", "db0", m)
	if _, err := os.Stat(path); err != nil || !strings.HasPrefix(path, Sources["cluster"].(cluster).dir) {
		t.Errorf("it is at %s: %v", path, err)
	}
	if kept, err := List(dirs, "karoo"); err != nil || len(kept) > 0 {
		t.Errorf("it is kept with the state: %+v, %v", kept, err)
	}
	if err := Release(dirs); err != nil {
		t.Error(err)
	}
}
